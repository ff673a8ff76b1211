import Delivery
import Providers
import PushCore
import Wire

extension Shard {
  var report: ShardReport {
    var report = ShardReport(at: time.now)
    report.counters = counters
    report.times = pipeline.observers.figures.times
    report.times.confirms = outbox.confirmTimes
    for provider in Platform.allCases { report.times[answersOf: provider] = pools.answerTimes(of: provider).histogram }
    report.isReady = broker.isUp
    report.isBrokerBlocked = broker.isBlocked
    report.brokerConnectionsEnded = broker.connectionsEnded
    report.isDraining = isDraining
    report.inHand = inHand
    report.ahead = pipeline.backpressure.ahead.count
    report.orphans = pipeline.table.orphans.count
    report.unconfirmed = outbox.backlog
    report.stuck = outbox.stuck
    report.inFlight = pipeline.dispatcher.onStreams
    report.oldestAge = pipeline.table.oldestAge(at: time.now)
    report.loopLag = loopLag.most
    report.registry = registry.map { .init(isUp: $0.isUp, isWritable: $0.isWritable) }
    report.series = pools.apps.series.names
    report.providers = pools.providersOfSeries
    report.openBreakers = pipeline.feedback.marks.open.map { pools.apps[$0].id }
    report.holds = pipeline.dispatcher.holds.report
    report.controls = pipeline.dispatcher.controls.report
    report.pools = pipeline.dispatcher.reportedPools.sorted().map(pool)
    report.connectionsOpened = connectionsOpened
    report.goAways = goAways
    report.deadLetters = pipeline.observers.figures.letterReasons.counts.map { kind, count in
      .init(app: name(of: kind.app), error: kind.error, reason: kind.reason, count: count)
    }
    report.expiries = pools.expiries
    report.campaigns = fleetFigures.campaigns
    report.queues = fleetFigures.queues
    return report
  }

  private func name(of app: Int?) -> String {
    app.map { String(decoding: pools.apps[$0].id, as: UTF8.self) } ?? AppSeries().names[AppSeries.none]
  }

  private func pool(_ number: Int) -> ShardReport.Pool {
    let account = pipeline.dispatcher.pools[number].account
    let since = pipeline.dispatcher.pools[number].bulkhead.troubledSince
    // Another application may use the credential, so trouble is shown nevertheless.
    let mode = since == nil ? pipeline.dispatcher.controls.mode(ofPool: number) : .running
    let state = mode == .paused ? .paused(reason: Dispatcher.pausedCredential) : account.state
    return .init(
      name: account.name, troubledSince: since.map { time.wallClock - Int64(time.now.seconds(since: $0) * 1_000) },
      mode: mode, isCredentialRefused: account.isCredentialRefused,
      connections: account.pool.openConnections, streams: account.inFlight, state: state.word,
      reason: state.trouble ?? (since != nil && state == .open ? Dispatcher.silentProvider : nil))
  }
}

extension PoolState {
  var word: String {
    switch self {
    case .idle: "idle"
    case .connecting: "connecting"
    case .probing: "probing"
    case .open: "open"
    case .paused: "paused"
    case .backingOff: "backing off"
    case .stopped: "stopped"
    case .closing: "closing"
    case .closed: "closed"
    }
  }
}
