import Delivery
import DeviceRegistry
import PushCore
import Reactor
import Settings
import Wire

extension WorkerReport {
  /// The report as one JSON object on one line. It contains configured names, numbers and providers' reasons with possible
  /// tokens removed, but no token or secret. Its size is bounded like that of the metrics.
  var json: [UInt8] {
    var object = JSONObjectWriter()
    object.set("worker", ThisProcess.name)
    object.set("version", version)
    object.set("at", time: at)
    object.set("started_at", time: Int64(usage.startTime * 1000))
    object.set("live", health.liveness)
    object.set("ready", health.readiness)
    object.set("shards", Int64(shards))
    object.set("shards_ready", Int64(shardsReady))
    object.set("totals", object: addTotals)
    object.set("now", object: addPresent)
    object.set("broker", object: addBroker)
    if let registry = whole.registry {
      object.set(
        "registry",
        object: {
          $0.set("up", registry.isUp)
          $0.set("writable", registry.isWritable)
        })
    }
    object.set("apps", objects: whole.series.indices.filter(isShown).map { series in { add(series, to: &$0) } })
    object.set("times", object: addTimes)
    object.set("pools", objects: pools.map { pool in { add(pool, to: &$0) } })
    object.set("holds", objects: holds.map { hold in { add(hold, to: &$0) } })
    object.set("controls", objects: whole.controls.prefix(Self.most).map { control in { control.writeNamed(to: &$0, at: at) } })
    object.set("open_breakers", whole.openBreakers.prefix(Self.most).map(\.self))
    object.set("dead_letters", objects: whole.deadLetters.prefix(Self.most).map { letters in { add(letters, to: &$0) } })
    if let queues = whole.queues {
      object.set("queues", object: { for queue in queues { $0.set(queue.name, Int64(queue.ready)) } })
    }
    if let campaigns = whole.campaigns {
      object.set(
        "campaigns",
        object: { for state in CampaignState.allCases { $0.set(state.name, Int64(campaigns.counts[state] ?? 0)) } })
      object.set("latest_campaigns", objects: campaigns.latest.map { campaign in { add(campaign, to: &$0) } })
    }
    object.set("expiries", objects: whole.expiries.prefix(Self.most).map { expiry in { add(expiry, to: &$0) } })
    object.set("process", object: addProcess)
    return object.closed()
  }

  private static let most = 100

  private func isShown(_ series: Int) -> Bool {
    series > AppSeries.others || RequestLedger.Entry.allCases.contains { whole.counters.ledger.amount($0, series) != 0 }
      || PushCounts.Provider.allCases.contains { provider in
        PushCounts.Lane.allCases.contains { lane in
          PushError.allCases.contains { whole.counters.pushes.amount(.failed($0), series, provider, lane) != 0 }
            || whole.counters.pushes.amount(.delivered, series, provider, lane) != 0
        }
      }
  }

  private func addTotals(_ object: inout JSONObjectWriter) {
    for counter in Counters.all {
      if let name = counter.status { object.set(name, Int64(whole.counters[keyPath: counter.path])) }
    }
    object.set("trace_noted", Int64(whole.observability.traced))
    object.set("trace_left_out", Int64(whole.observability.untraced))
  }

  private func addPresent(_ object: inout JSONObjectWriter) {
    object.set("in_hand", Int64(whole.inHand))
    object.set("ahead", Int64(whole.ahead))
    object.set("unconfirmed", Int64(whole.unconfirmed))
    object.set("stuck", Int64(whole.stuck))
    object.set("in_flight", Int64(whole.inFlight))
    object.set("oldest_age_seconds", seconds: whole.oldestAge)
    object.set("loop_lag_seconds", seconds: whole.loopLag)
  }

  private func addBroker(_ object: inout JSONObjectWriter) {
    object.set("connected", whole.isReady)
    object.set("blocked", whole.isBrokerBlocked)
    object.set("connections_ended", Int64(whole.brokerConnectionsEnded))
  }

  private func add(_ series: Int, to object: inout JSONObjectWriter) {
    object.set("app", whole.series[series])
    object.set(
      "ledger",
      object: {
        for entry in RequestLedger.Entry.allCases { $0.set(entry.name, Int64(whole.counters.ledger.amount(entry, series))) }
      })
    let rows = rows.filter { $0.series == series }
    object.set("pushes", objects: rows.filter { $0.isExpected || !isEmpty($0) }.map { row in { add(row, to: &$0) } })
  }

  private func isEmpty(_ row: Row) -> Bool {
    let pushes = whole.counters.pushes
    func amount(_ field: PushCounts.Field) -> Int { pushes.amount(field, row.series, row.provider, row.lane) }
    return amount(.delivered) == 0 && amount(.parked) == 0
      && PushError.allCases.allSatisfy { amount(.failed($0)) == 0 && amount(.retried($0)) == 0 && amount(.deadLetter($0)) == 0 }
  }

  private func add(_ row: Row, to object: inout JSONObjectWriter) {
    let pushes = whole.counters.pushes
    func amount(_ field: PushCounts.Field) -> Int64 { Int64(pushes.amount(field, row.series, row.provider, row.lane)) }
    func addCodes(_ name: String, _ field: (PushError) -> PushCounts.Field) {
      object.set(
        name,
        object: { for code in PushError.allCases where amount(field(code)) != 0 { $0.set(code.rawValue, amount(field(code))) } }
      )
    }
    object.set("provider", row.provider.name)
    object.set("lane", row.lane.name)
    object.set("delivered", amount(.delivered))
    object.set("parked", amount(.parked))
    addCodes("failed") { .failed($0) }
    addCodes("retried") { .retried($0) }
    addCodes("dead_letters") { .deadLetter($0) }
  }

  /// Counts per bucket, not cumulative; the last one is above the last bound.
  private func addTimes(_ object: inout JSONObjectWriter) {
    var histograms: [(name: String, provider: PushCounts.Provider?, lane: PushCounts.Lane?, histogram: Histogram)] = []
    for provider in PushTimes.providers {
      for lane in PushCounts.Lane.allCases {
        histograms.append(("publish_to_answer", provider, lane, whole.times.publishToAnswer(provider, lane)))
      }
      histograms.append(("provider_answer", provider, nil, whole.times[answersOf: provider]))
    }
    histograms.append(("broker_confirm", nil, nil, whole.times.confirms))
    object.set(
      "histograms",
      objects: histograms.map { part in
        {
          $0.set("name", part.name)
          $0.set("provider", part.provider?.name)
          $0.set("lane", part.lane?.name)
          $0.set("bounds", raw: Array("[\(part.histogram.bounds.map { "\($0)" }.joined(separator: ","))]".utf8))
          $0.set("counts", raw: Array("[\(part.histogram.counts.map { "\($0)" }.joined(separator: ","))]".utf8))
          $0.set("sum_seconds", seconds: part.histogram.sum)
          if let provider = part.provider, let lane = part.lane {
            $0.set("whole_seconds", Int64(whole.times.wholeSeconds(provider, lane)))
          }
        }
      })
  }

  private func add(_ pool: ShardReport.Pool, to object: inout JSONObjectWriter) {
    object.set("pool", pool.name)
    object.set("credential_ok", !pool.isCredentialRefused)
    object.set("in_trouble", pool.isInTrouble)
    object.set("state", pool.state)
    object.set("reason", pool.reason.map(DeadLetterLog.words))
    object.set("remedy", pool.remedy?.words)
    object.set("runbook", pool.remedy?.section)
    object.set("connections", Int64(pool.connections))
    object.set("streams", Int64(pool.streams))
  }

  private func add(_ hold: HoldReport, to object: inout JSONObjectWriter) {
    object.set("app", hold.app)
    object.set("ready", hold.ready.map(Int64.init))
    object.set("in_hand", Int64(hold.inHand))
  }

  private func add(_ letters: ShardReport.DeadLetters, to object: inout JSONObjectWriter) {
    object.set("app", letters.app)
    object.set("error", letters.error.rawValue)
    object.set("reason", letters.reason)
    object.set("count", Int64(letters.count))
  }

  /// Without the target, which may name a user or contain a group's key.
  private func add(_ campaign: Campaign, to object: inout JSONObjectWriter) {
    object.set("campaign", campaign.description.id)
    object.set("app", campaign.description.app)
    object.set("state", campaign.state.name)
    object.set("sent", campaign.sent)
    object.set("failed", campaign.failed)
    object.set("remaining", campaign.remaining)
    object.set("created_at", time: campaign.createdAt)
  }

  private func add(_ expiry: CertificateExpiry, to object: inout JSONObjectWriter) {
    object.set("credential", expiry.name)
    object.set("not_after", time: expiry.notAfter * 1000)
  }

  private func addProcess(_ object: inout JSONObjectWriter) {
    object.set("cpu_seconds", seconds: usage.cpuSeconds)
    object.set("resident_bytes", Int64(usage.residentBytes))
    object.set("open_fds", Int64(usage.openDescriptors))
    object.set("max_fds", Int64(usage.descriptorLimit))
    object.set("log_lines_dropped", Int64(droppedLogLines))
  }
}

extension RequestLedger.Entry {
  var name: String {
    switch self {
    case .accepted: "accepted"
    case .resumed: "resumed"
    case .settled: "settled"
    case .putOff: "put_off"
    case .givenBack: "given_back"
    case .inHand: "in_hand"
    }
  }
}

extension JSONObjectWriter {
  fileprivate mutating func set(_ name: String, _ value: Bool) { set(name, raw: Array("\(value)".utf8)) }
  fileprivate mutating func set(_ name: String, seconds: Double) {
    set(name, raw: Array("\((seconds * 1e6).rounded() / 1e6)".utf8))
  }
}
