import BrokerModel
import PushCore
import Simulator
import Wire

/// The faults of a fleet. Each seed has only a few kinds, so that each kind also occurs without the others.
public enum FaultKind: String, CaseIterable, Sendable {
  case workerKilled, workerFrozen, workerDrained, workerSkewed
  case brokerCrash, brokerFrozen, brokerAlarm, connectionsClosed, channelsClosed, leaderChanged
  case confirmsLate, confirmsNacked, outcomesUnconfirmed
  case pathCut, pathDead, pathStalled
  case goAway, streamsRefused, streamsReset, streamsStalled, streamsLimited, storm, credentialRefused, tokensGone,
    tokenEndpointHangs,
    providerRefuses
  case registryDown, registryFailsBefore, registryFailsAfter, registrySlow
  case workerReloaded
  /// Faults of some applications' providers, or of a push service. In order: no listener, no answer to connections, no answer
  /// to requests, late answers, refused credential, rate limit, unavailable service, silent token endpoint.
  case appRefuses, appUnanswered, appSilent, appSlow, appForbidden, appThrottled, appUnavailable, appTokenHangs
  /// Closes the workers' consuming channels but not the publishing ones, as after a consumer timeout.
  case consumersClosed
  /// An operator pauses some applications, and later resumes them.
  case appPaused

  /// True if a device may get a push twice: an answer or an acknowledgement may be lost.
  var mayDouble: Bool {
    switch self {
    case .goAway, .streamsRefused, .streamsLimited, .storm, .credentialRefused, .tokensGone, .tokenEndpointHangs,
      .providerRefuses,
      .confirmsLate,
      .brokerAlarm, .workerSkewed, .workerReloaded, .registryDown, .registryFailsBefore, .registryFailsAfter, .registrySlow,
      .appForbidden, .appThrottled, .appUnavailable, .appTokenHangs, .appPaused:
      false
    case .workerKilled, .workerFrozen, .workerDrained, .brokerCrash, .brokerFrozen, .connectionsClosed, .channelsClosed,
      .consumersClosed, .leaderChanged, .confirmsNacked, .outcomesUnconfirmed, .pathCut, .pathDead, .pathStalled, .streamsReset,
      .streamsStalled,
      .appRefuses, .appUnanswered, .appSilent, .appSlow:
      true
    }
  }

  /// True if a worker may give up an answer to a backend's queue, because that queue may have caused the broker's error.
  var mayDropReplies: Bool { self == .channelsClosed }

  /// True if a worker may lose unacknowledged requests.
  var isLoss: Bool {
    switch self {
    case .workerKilled, .workerFrozen, .workerDrained, .brokerCrash, .brokerFrozen, .connectionsClosed, .channelsClosed,
      .consumersClosed, .leaderChanged, .pathCut, .pathDead, .pathStalled:
      true
    default: false
    }
  }

  /// True if the broker doesn't show the cause of a repeat: a provider's answer is lost or reaches a worker without the
  /// request, or a confirm reaches a worker that has given up the connection.
  var doublesUnseen: Bool {
    switch self {
    case .workerFrozen, .brokerFrozen, .brokerAlarm, .pathCut, .pathDead, .pathStalled, .streamsReset, .streamsStalled,
      .appRefuses,
      .appUnanswered, .appSilent, .appSlow:
      true
    default: false
    }
  }

  /// True if confirms may be missing for so long that a worker treats the queue as stuck and reads on.
  var mayHoldConfirms: Bool {
    switch self {
    case .outcomesUnconfirmed, .brokerFrozen, .brokerAlarm, .leaderChanged, .workerFrozen, .pathDead, .pathStalled: true
    default: false
    }
  }

  /// True if a worker's copy may arrive late, or be published again on another channel.
  var mayDelayCopies: Bool {
    switch self {
    case .consumersClosed: false
    case .confirmsNacked, .outcomesUnconfirmed: true
    default: isLoss
    }
  }

  /// True for the faults that a push service may have.
  var isOfServices: Bool {
    switch self {
    case .goAway, .streamsRefused, .streamsReset, .streamsStalled, .streamsLimited, .storm, .credentialRefused, .tokensGone,
      .providerRefuses:
      true
    default: isOfApps && self != .appTokenHangs && self != .appPaused
    }
  }

  /// True for faults of single applications' providers or of a push service.
  var isOfApps: Bool {
    switch self {
    case .appRefuses, .appUnanswered, .appSilent, .appSlow, .appForbidden, .appThrottled, .appUnavailable, .appTokenHangs,
      .appPaused:
      true
    default: false
    }
  }
}

/// A provider's answers in a fault.
struct Refusals {
  let tooMany: Step
  let unavailable: Step
  let credential: Step
  let gone: Step

  init(_ platform: Platform) {
    let reasons =
      switch platform {
      case .apns: ["TooManyRequests", "ServiceUnavailable", "InvalidProviderToken", "Unregistered"]
      case .fcm: ["QUOTA_EXCEEDED", "UNAVAILABLE", "SENDER_ID_MISMATCH", "UNREGISTERED"]
      // Apple's word for another VAPID key, and each service's own words.
      case .webpush: [nil, nil, "VapidPkHashMismatch", nil]
      }
    tooMany = Step(status: 429, reason: reasons[0])
    unavailable = Step(status: 503, reason: reasons[1])
    credential = Step(status: 403, reason: reasons[2])
    gone = Step(status: platform == .apns ? 410 : 404, reason: reasons[3])
  }
}

/// Plans and performs the faults of a run, with a separate random source.
final class FaultInjector {
  /// One fault. Its details follow from its own seed, independent of the other events.
  private struct Event {
    var time: Double
    var kind: FaultKind
    var seed: UInt64
  }

  unowned let fleet: FleetSimulation
  let world: World
  var random: RandomSource
  private var events: [Event] = []
  let kinds: [FaultKind]
  private(set) var faultFreeTimes: FaultFreeTimes
  var appFaults = AppFaults()
  /// Number of planned events.
  var count: Int { events.count }
  var losses: Int { events.count { $0.kind.isLoss } }

  /// - Parameter selection: a part of the events, to reduce a failure.
  init(_ fleet: FleetSimulation, _ world: World, selection: Selection) {
    self.fleet = fleet
    self.world = world
    random = world.fork()
    faultFreeTimes = FaultFreeTimes(isKnown: fleet.scenario.prefetch == Scenario.usualPrefetch)
    let divides = fleet.scenario.ownsProviders
    let isHalf = random.next() % 2 == 0
    let isOfAppsAlone = divides && isHalf
    let share = Int.random(in: 0...3, using: &random)
    let isTimed = Self.isTimed(world.seed)
    let servicesFailAlone = fleet.scenario.onlyServicesFail
    for kind in FaultKind.allCases {
      let isMeant =
        isTimed
        ? FaultFreeTimes.knowsEnd(of: kind)
        : servicesFailAlone ? kind.isOfServices : kind.isOfApps ? divides : !isOfAppsAlone
      let isIn = Int.random(in: 0..<10, using: &random) < share && isMeant
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let event = Event(time: Self.moment(of: kind, fleet.scenario, &random), kind: kind, seed: random.next())
        if selection.kinds?.contains(kind) ?? isIn { events.append(event) }
      }
    }
    events.sort { $0.time < $1.time }
    if let events = selection.events {
      self.events = self.events.enumerated().filter { events.contains($0.offset) }.map(\.element)
    }
    let planned = Set(events.map(\.kind))
    kinds = FaultKind.allCases.filter(planned.contains)
    for event in events {
      world.schedule(after: event.time) { [self] in
        random = RandomSource(seed: event.seed)
        strike(event.kind)
      }
    }
  }

  /// In every eighth seed, all faults have a known end, to check how soon pushes are sent again.
  private static func isTimed(_ seed: UInt64) -> Bool {
    var random = RandomSource(seed: seed ^ 0x7469_6D65)
    return random.next() % 8 == 0
  }

  /// Some faults of single applications come just before a surge of requests.
  private static func moment(of kind: FaultKind, _ scenario: Scenario, _ random: inout RandomSource) -> Double {
    let time = scenario.moment(after: 1, within: burst, &random)
    guard kind.isOfApps, let surge = scenario.surge, random.next() % 2 == 0 else { return time }
    return max(1, surge - Double.random(in: 0...3, using: &random))
  }

  /// Seconds after the beat within which simultaneous faults come.
  private static let burst = 0.3

  /// The selected events of a seed; nil for all.
  struct Selection {
    var kinds: Set<FaultKind>?
    /// Numbers of the selected kinds' events, in order of time.
    var events: Set<Int>?
  }

  /// Largest clock skew of a worker in milliseconds.
  static let mostSkew: Int64 = 4_000

  func seconds(_ range: ClosedRange<Int>) -> Double { Double(Int.random(in: range, using: &random)) }

  /// - Returns: the duration in seconds.
  @discardableResult
  private func note(_ kind: FaultKind, _ seconds: Double) -> Double {
    faultFreeTimes.note(kind, from: world.elapsed, for: seconds)
    return seconds
  }

  private func strike(_ kind: FaultKind) {
    switch kind {
    case .workerKilled, .workerFrozen, .workerDrained, .workerSkewed, .workerReloaded: strikeWorker(kind)
    case .brokerCrash: fleet.node.crash(for: note(kind, seconds(1...20)))
    case .brokerFrozen: fleet.node.freeze(for: note(kind, seconds(1...40)))
    case .brokerAlarm: fleet.node.raiseAlarm(for: note(kind, seconds(1...40)))
    case .leaderChanged:
      note(kind, 0)
      world.note("what is in hand is delivered again")
      fleet.node.broker.deliverAgain(at: world.now)
      fleet.node.wake()
    case .connectionsClosed:
      note(kind, 0)
      world.note("connections are closed")
      fleet.node.broker.closeConnections(at: world.now) { _ in true }
      fleet.node.wake()
    case .channelsClosed:
      note(kind, 0)
      world.note("channels are closed")
      fleet.node.broker.closeChannels(at: world.now) { $0.name != "producer" }
      fleet.node.wake()
    case .consumersClosed:
      note(kind, 0)
      world.note("consumers' channels are closed")
      fleet.node.broker.closeChannels(reason: "delivery acknowledgement timed out", at: world.now) {
        $0.name.hasSuffix(", consuming") || $0.name.hasSuffix(", hold queues")
      }
      fleet.node.wake()
    case .confirmsLate, .confirmsNacked: strikeConfirms(kind)
    case .outcomesUnconfirmed: withholdOutcomes()
    case .pathCut, .pathDead, .pathStalled: strikePath(kind)
    case .registryDown, .registryFailsBefore, .registryFailsAfter, .registrySlow: strikeRegistry(kind)
    case .goAway, .streamsRefused, .streamsReset, .streamsStalled, .streamsLimited, .storm, .credentialRefused, .tokensGone,
      .tokenEndpointHangs,
      .providerRefuses:
      strikeProvider(kind)
    case .appRefuses, .appUnanswered, .appSilent, .appSlow, .appForbidden, .appThrottled, .appUnavailable, .appTokenHangs:
      strikeApps(kind)
    case .appPaused: pauseApps()
    }
  }

  private func strikeWorker(_ kind: FaultKind) {
    note(kind, 0)
    let worker = fleet.workers[Int.random(in: 0..<fleet.workers.count, using: &random)]
    guard worker.isRunning, !worker.isFrozen else { return }
    let pause = seconds(1...30)
    switch kind {
    case .workerKilled:
      worker.kill()
      world.schedule(after: pause) { worker.start() }
    case .workerFrozen:
      world.note("\(worker.name) is stopped")
      worker.isFrozen = true
      world.schedule(after: pause * 2) { [world] in
        world.note("\(worker.name) goes on")
        worker.isFrozen = false
        worker.wake()
      }
    case .workerDrained:
      worker.drain()
      world.schedule(after: pause + 25) { [weak self] in self?.startWhenEnded(worker) }
    case .workerReloaded: worker.reload()
    default:
      worker.clockSkew = Int64.random(in: -Self.mostSkew...Self.mostSkew, using: &random)
      world.note("\(worker.name)'s clock is off by \(worker.clockSkew) ms")
    }
  }

  /// A worker that was frozen while it drained takes longer.
  private func startWhenEnded(_ worker: WorkerProcess) {
    guard worker.isRunning else { return worker.start() }
    world.schedule(after: 1) { [weak self] in self?.startWhenEnded(worker) }
  }

  private func strikeConfirms(_ kind: FaultKind) {
    let oneIn = UInt64(Int.random(in: 2...10, using: &random))
    let most = seconds(1...8)
    var chance = RandomSource(seed: random.next())
    let duration = note(kind, seconds(5...30))
    world.note("\(kind)")
    fleet.node.broker.confirmation = { message, client in
      guard chance.next() % oneIn == 0, client.name != "producer" else { return .ack(after: 0) }
      let delay = Double(chance.next() % 1000) / 1000 * most
      // Nacks here would make the worker give up the answer.
      let isAnswer = message.routingKey.elementsEqual(Producer.replies.utf8)
      return kind == .confirmsLate || isAnswer ? .ack(after: delay) : .nack(after: delay, isKept: chance.next() % 2 == 0)
    }
    world.schedule(after: duration) { [fleet, world] in
      world.note("\(kind), over")
      fleet.node.broker.confirmation = { _, _ in .ack(after: 0) }
    }
  }

  /// Simulates a result queue without a majority.
  private func withholdOutcomes() {
    let duration = seconds(5...60)
    note(.outcomesUnconfirmed, duration)
    world.note("results are not confirmed for \(duration) s")
    let end = world.now.advanced(bySeconds: duration)
    fleet.node.broker.confirmation = { [world] message, _ in
      .ack(after: message.routingKey.starts(with: "result.".utf8) ? max(0, end.seconds(since: world.now)) : 0)
    }
    world.schedule(after: duration) { [fleet] in fleet.node.broker.confirmation = { _, _ in .ack(after: 0) } }
  }

  private func strikePath(_ kind: FaultKind) {
    note(kind, 0)
    let paths = world.network.paths.filter { !$0.isOver }
    guard !paths.isEmpty else { return }
    let path = paths[Int.random(in: 0..<paths.count, using: &random)]
    world.note("\(kind): \(path.name)")
    switch kind {
    case .pathCut: path.cut(at: world.now)
    case .pathDead: path.isDead = true
    default: path.stalledUntil = world.now.advanced(bySeconds: seconds(1...20))
    }
    for end in [path.client, path.server] { end?.participant.wake() }
  }

  private func strikeRegistry(_ kind: FaultKind) {
    note(kind, 0)
    let shared = fleet.store
    world.note("\(kind)")
    switch kind {
    case .registryDown:
      shared.isDown = true
    case .registrySlow:
      shared.slowest = 2
    default:
      var chance = RandomSource(seed: random.next())
      let oneIn = UInt64(Int.random(in: 2...12, using: &random))
      shared.fault = { chance.next() % oneIn != 0 ? nil : kind == .registryFailsBefore ? .before : .after }
    }
    world.schedule(after: seconds(2...25)) { [world] in
      world.note("\(kind), over")
      shared.isDown = false
      shared.slowest = 0
      shared.fault = { nil }
    }
  }

  private func strikeProvider(_ kind: FaultKind) {
    let providers = fleet.providers.filter { $0.service != nil || !fleet.scenario.onlyServicesFail }
    let provider = providers[Int.random(in: 0..<providers.count, using: &random)]
    let refusals = Refusals(provider.platform)
    let oneIn = [1, 2, 5, 20][Int.random(in: 0...3, using: &random)]
    var step = Step()
    switch kind {
    case .goAway:
      var plan = Step.GoAwayPlan()
      // Never one that denies an answered stream.
      plan.lastStream = [.this, .previous, .max][Int.random(in: 0...2, using: &random)]
      step.fault = .goAway(plan)
    case .streamsRefused: step.fault = .refuse
    case .streamsReset: step.fault = .reset(.internalError)
    case .streamsStalled: step.fault = .stall
    case .streamsLimited: step.streams = Int.random(in: 0...8, using: &random)
    case .storm:
      step = [refusals.tooMany, refusals.unavailable][Int.random(in: 0...1, using: &random)]
      if random.next() % 2 == 0 { step.retryAfter = "3" }
    case .credentialRefused: step = refusals.credential
    case .tokensGone:
      step = refusals.gone
      // A wave of false 404s, or single subscriptions that have ended.
      if provider.service != nil, oneIn > 1 { step.status = 410 }
    case .tokenEndpointHangs: step.fault = .stall
    default:
      let how: Network.Refusal = random.next() % 2 == 0 ? .refused : .silent
      // Strangers run push services, and some of them stay away.
      let isLong = provider.service != nil && random.next() % 4 == 0
      let duration = isLong ? seconds(100...600) : seconds(2...40)
      note(kind, of: provider, duration)
      return provider.refuse(how, for: duration)
    }
    let duration = seconds(1...20)
    // A provider that sends GOAWAY for everything counts as unreachable.
    if kind == .goAway, oneIn > 1, provider.service == nil {
      noteGoAways(of: provider, for: duration)
    } else {
      note(kind, of: provider, duration)
    }
    provider.suffer(.init(step: step, oneIn: oneIn, isOfTokens: kind == .tokenEndpointHangs), for: duration, "\(kind)")
  }

  /// A push service's fault must not be felt elsewhere. The end of another provider's recovery is unknown.
  private func note(_ kind: FaultKind, of provider: SimulatedProvider, _ duration: Double) {
    if let service = provider.service { note(kind, of: service, duration) } else { note(.providerRefuses, duration) }
  }

  func note(_ kind: FaultKind, of service: PushService, _ duration: Double) {
    appFaults.all.append(
      AppFault(
        kind: kind, apps: [], platforms: [.webpush], from: world.elapsed, to: world.elapsed + duration, recovery: 0,
        service: service))
  }

  private func noteGoAways(of provider: SimulatedProvider, for duration: Double) {
    let start = world.elapsed
    note(.goAway, duration)
    world.schedule(after: duration) { [self] in
      if provider.goAways(since: world.elapsed - FaultFreeTimes.dialWindow) <= Self.fewGoAways {
        faultFreeTimes.fewGoAways(since: start)
      }
    }
  }

  /// Together with the existing connection, fewer than a pool makes at once.
  private static let fewGoAways = 4
}
