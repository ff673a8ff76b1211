import Delivery
import DeviceRegistry
import PushCore
import Reactor
import Settings
import Wire

extension WorkerReport {
  /// The report as one JSON object on one line. It contains configured names, numbers and providers' reasons with possible
  /// tokens removed, but no token or secret. Its size is bounded like that of the metrics.
  var json: JSONObject {
    let queues = whole.queues.map { queues in JSONObject(queues.map { ($0.name, $0.ready) }) }
    let campaigns = whole.campaigns.map { part in JSONObject(CampaignState.allCases.map { ($0.name, part.counts[$0] ?? 0) }) }
    return [
      "worker": ThisProcess.name, "version": version, "at": Timestamp.text(at),
      "started_at": Timestamp.text(Int64(usage.startTime * 1000)), "live": health.liveness, "ready": health.readiness,
      "shards": shards, "shards_ready": shardsReady, "totals": totals, "now": present, "broker": broker,
      "registry": JSONOptional(whole.registry?.json),
      "apps": whole.series.indices.filter(isShown).map(app), "times": times, "pools": pools.map(Self.description),
      "holds": holds.map { ["app": $0.app, "ready": $0.ready, "in_hand": $0.inHand] as JSONObject },
      "controls": whole.controls.prefix(Self.most).map { $0.namedJSON(at: at) },
      "open_breakers": Array(whole.openBreakers.prefix(Self.most)),
      "dead_letters": whole.deadLetters.prefix(Self.most).map(Self.description),
      "queues": JSONOptional(queues), "campaigns": JSONOptional(campaigns),
      "latest_campaigns": JSONOptional(whole.campaigns?.latest.map(Self.description)),
      "expiries": whole.expiries.prefix(Self.most).map { expiry -> JSONObject in
        ["credential": expiry.name, "not_after": Timestamp.text(expiry.notAfter * 1000)]
      },
      "process": process,
    ]
  }

  private static let most = 100

  private func isShown(_ series: Int) -> Bool {
    series > AppSeries.others || RequestLedger.Entry.allCases.contains { whole.counters.ledger.amount($0, series) != 0 }
      || PushError.allCases.contains { whole.counters.pushes.total(.failed($0), series) != 0 }
      || whole.counters.pushes.total(.delivered, series) != 0
  }

  private var totals: JSONObject {
    JSONObject(Counters.all.compactMap { counter in counter.status.map { ($0, counter.amount(in: whole.counters)) } })
  }

  private var present: JSONObject {
    [
      "in_hand": whole.inHand, "ahead": whole.ahead, "unconfirmed": whole.unconfirmed, "stuck": whole.stuck,
      "in_flight": whole.inFlight, "oldest_age_seconds": Self.seconds(whole.oldestAge),
      "loop_lag_seconds": Self.seconds(whole.loopLag),
    ]
  }

  private var broker: JSONObject {
    [
      "connected": whole.isReady, "blocked": whole.isBrokerBlocked, "connections_ended": whole.brokerConnectionsEnded,
    ]
  }

  private func app(_ series: Int) -> JSONObject {
    let rows = rows.filter { $0.series == series && ($0.isExpected || !isEmpty($0)) }
    let ledger = JSONObject(RequestLedger.Entry.allCases.map { ($0.name, whole.counters.ledger.amount($0, series)) })
    return ["app": whole.series[series], "ledger": ledger, "pushes": rows.map(pushes)]
  }

  private func isEmpty(_ row: Row) -> Bool {
    let byCode = PushError.allCases.flatMap { [PushCounts.Field.failed($0), .retried($0), .deadLetter($0)] }
    return ([.delivered, .parked] + byCode).allSatisfy { amount($0, row) == 0 }
  }

  private func pushes(_ row: Row) -> JSONObject {
    func byCode(_ field: (PushError) -> PushCounts.Field) -> JSONObject {
      JSONObject(PushError.allCases.map { ($0.rawValue, amount(field($0), row)) }.filter { $1 != 0 })
    }
    return [
      "provider": row.providerName, "lane": row.lane.name, "delivered": amount(.delivered, row), "parked": amount(.parked, row),
      "failed": byCode { .failed($0) }, "retried": byCode { .retried($0) }, "dead_letters": byCode { .deadLetter($0) },
    ]
  }

  /// Counts per bucket, not cumulative; the last one is above the last bound.
  private var times: JSONObject {
    let parts = (whole.times.ofProviders + [("broker_confirm", nil, nil, whole.times.confirms)]).map { part -> JSONObject in
      let wholeSeconds = part.provider.flatMap { provider in part.lane.map { whole.times.wholeSeconds(provider, $0) } }
      return [
        "name": part.name, "provider": part.provider?.word, "lane": part.lane?.name,
        "bounds": Self.numbers(part.histogram.bounds), "counts": Self.numbers(part.histogram.counts),
        "sum_seconds": Self.seconds(part.histogram.sum), "whole_seconds": JSONOptional(wholeSeconds),
      ]
    }
    return ["histograms": parts]
  }

  private static func description(_ pool: ShardReport.Pool) -> JSONObject {
    [
      "pool": pool.name, "credential_ok": !pool.isCredentialRefused, "in_trouble": pool.isInTrouble, "state": pool.state,
      "reason": pool.reason.map(DeadLetterLog.words), "remedy": pool.remedy?.words, "runbook": pool.remedy?.section,
      "connections": pool.connections, "streams": pool.streams,
    ]
  }

  private static func description(_ letters: ShardReport.DeadLetters) -> JSONObject {
    ["app": letters.app, "error": letters.error.rawValue, "reason": letters.reason, "count": letters.count]
  }

  /// Without the target, which may name a user or contain a group's key.
  private static func description(_ campaign: Campaign) -> JSONObject {
    [
      "campaign": campaign.description.id, "app": campaign.description.app, "state": campaign.state.name,
      "sent": campaign.sent, "failed": campaign.failed, "remaining": campaign.remaining,
      "created_at": Timestamp.text(campaign.createdAt),
    ]
  }

  private var process: JSONObject {
    [
      "cpu_seconds": Self.seconds(usage.cpuSeconds), "resident_bytes": usage.residentBytes,
      "open_fds": usage.openDescriptors, "max_fds": usage.descriptorLimit, "log_lines_dropped": droppedLogLines,
    ]
  }

  private static func numbers(_ values: [some Numeric]) -> JSONRaw {
    JSONRaw(Array("[\(values.map { "\($0)" }.joined(separator: ","))]".utf8))
  }

  private static func seconds(_ value: Double) -> JSONRaw { JSONRaw(Array("\((value * 1e6).rounded() / 1e6)".utf8)) }
}

extension RequestLedger.Entry {
  var name: String { spelling("\(self)", separator: "_") }
}

extension PushTimes {
  typealias Part = (name: String, provider: Platform?, lane: PushCounts.Lane?, histogram: Histogram)

  /// The histograms of providers.
  var ofProviders: [Part] {
    Platform.allCases.flatMap { provider -> [Part] in
      [("provider_answer", provider, nil, self[answersOf: provider])]
        + PushCounts.Lane.allCases.map { ("publish_to_answer", provider, $0, publishToAnswer(provider, $0)) }
    }
  }
}
