import Delivery
import DeviceRegistry
import PushCore
import Reactor
import StatusHTTP
import Wire

/// A worker's metrics in Prometheus' text format. Labels come from the configuration and fixed tables, never from messages, so
/// that their number is bounded; ``AppSeries`` bounds the applications. Expected samples exist from the start, so that the
/// first event shows as an increase.
struct MetricsText {
  private let report: WorkerReport
  private var format = MetricsFormat()

  static func of(_ report: WorkerReport) -> String {
    var text = MetricsText(report: report)
    text.addPushes()
    text.addLedger()
    text.addCounters()
    text.addObservability()
    text.addTimes()
    text.addPresent()
    text.addPools()
    text.addStates()
    text.format.process(report.usage, version: report.version)
    return text.format.text
  }

  private init(report: WorkerReport) { self.report = report }

  private var whole: ShardReport { report.whole }

  // MARK: pushes

  private mutating func addPushes() {
    let rows = report.rows
    func labels(_ row: WorkerReport.Row) -> MetricsFormat.Labels {
      [("app", row.app), ("provider", row.providerName), ("lane", row.lane.name)]
    }
    func plain(_ field: PushCounts.Field, _ isExpected: (WorkerReport.Row) -> Bool) -> [(MetricsFormat.Labels, Int)] {
      rows.compactMap { row in
        let amount = report.amount(field, row)
        return amount != 0 || row.isExpected && isExpected(row) ? (labels(row), amount) : nil
      }
    }
    func byCode(
      _ field: (PushError) -> PushCounts.Field, _ expected: (Platform?) -> [PushError]
    ) -> [(MetricsFormat.Labels, Int)] {
      rows.flatMap { row in
        let codes = row.isExpected ? expected(row.provider) : []
        return PushError.allCases.compactMap { code in
          let amount = report.amount(field(code), row)
          return amount != 0 || codes.contains(code) ? (labels(row) + [("code", code.rawValue)], amount) : nil
        }
      }
    }
    format.counters(
      "pushfleet_pushes_delivered_total", "Pushes accepted by a provider.", plain(.delivered) { $0.provider != nil })
    format.counters(
      "pushfleet_pushes_failed_total",
      "Pushes that failed, by GCM code; without a provider: requests refused before they had devices.",
      byCode({ .failed($0) }, PushError.expected))
    format.counters(
      "pushfleet_pushes_retried_total", "Pushes that are retried, by the code of the answer.",
      byCode({ .retried($0) }) { $0 == nil ? [] : PushError.retried })
    format.counters(
      "pushfleet_pushes_parked_total", "Pushes or whole requests moved to the retry ladder without counting an attempt.",
      plain(.parked) { _ in true })
    format.counters(
      "pushfleet_dead_letters_total", "Dead letters published.",
      byCode({ .deadLetter($0) }) { provider in PushError.expected(with: provider).filter { $0 != .notRegistered } })
  }

  private mutating func addLedger() {
    let ledger = whole.counters.ledger
    func samples(_ entry: RequestLedger.Entry) -> [(MetricsFormat.Labels, Int)] {
      whole.series.enumerated().map { ([("app", $1)], ledger.amount(entry, $0)) }
    }
    let counters: [(RequestLedger.Entry, help: String)] = [
      (.accepted, "Requests received from the queues of producers."),
      (.resumed, "Requests received again after they were put off."),
      (.settled, "Requests whose consequences are all confirmed."),
      (.putOff, "Requests moved to the retry ladder, a hold queue or the quarantine."),
      (.givenBack, "Requests returned to the broker, which delivers them again."),
    ]
    for (entry, help) in counters { format.counters("pushfleet_requests_\(entry.name)_total", help, samples(entry)) }
    format.gauges(
      "pushfleet_requests_in_hand",
      "Accepted and resumed requests that are neither settled, put off nor given back.", samples(.inHand))
  }

  private mutating func addCounters() {
    let sum = whole.counters
    for counter in Counters.all {
      if let (name, help) = counter.metric { format.counter("pushfleet_\(name)", counter.amount(in: sum), help) }
    }
    format.counter(
      "pushfleet_broker_connections_ended_total", whole.brokerConnectionsEnded, "Connections to the broker that ended.")
    format.counter(
      "pushfleet_log_lines_dropped_total", report.droppedLogLines,
      "Log lines that could not be written to standard error.")
    format.counters(
      "pushfleet_acknowledgements_total",
      "Acknowledgements from devices, by outcome; refused counts messages, which may contain many.",
      [
        ([("outcome", "noted")], sum.acknowledgementsNoted), ([("outcome", "repeated")], sum.acknowledgementsRepeated),
        ([("outcome", "unknown")], sum.acknowledgementsUnknown), ([("outcome", "refused")], sum.acknowledgementsRefused),
      ])
    format.counters(
      "pushfleet_provider_connections_opened_total", "Connections to providers that were opened.",
      Platform.allCases.map { ([("provider", $0.word)], whole.connectionsOpened[Int($0.rawValue)]) })
    format.counters(
      "pushfleet_provider_goaways_total", "GOAWAY frames received from providers.",
      Platform.allCases.map { ([("provider", $0.word)], whole.goAways[Int($0.rawValue)]) })
    let refusals = report.refusedTunnels.merging([403, 407, 502, 504, 0].map { ($0, 0) }) { counted, _ in counted }
    format.counters(
      "pushfleet_proxy_refusals_total", "Connections that a proxy did not make, by the status of its answer.",
      refusals.sorted { $0.key < $1.key }.map { ([("status", $0.key == 0 ? "none" : "\($0.key)")], $0.value) })
  }

  private mutating func addObservability() {
    let counts = whole.counters
    format.counter("pushfleet_trace_requests_noted_total", counts.traced, "Requests recorded for `pushfleet trace`.")
    format.counters(
      "pushfleet_trace_requests_left_out_total",
      "Requests left out of the trace: more than trace.perSecond, or not accepted by the broker.",
      [([("reason", "rate")], counts.untracedByRate), ([("reason", "broker")], counts.untracedByBroker)])
    format.counter("pushfleet_spans_exported_total", counts.spansExported, "Spans accepted by the collector.")
    format.counters(
      "pushfleet_spans_dropped_total", "Spans that reached no collector: no room in the buffer, or not accepted.",
      [([("reason", "buffer")], counts.spansBeyondBuffer), ([("reason", "collector")], counts.spansNotTaken)])
  }

  private mutating func addTimes() {
    let times = whole.times
    format.histograms(
      "pushfleet_publish_to_answer_seconds",
      "Time from publishing to the provider's final answer, without broadcasts. "
        + "Without the header timestamp_in_ms, it is up to 1 s too long.",
      Platform.allCases.flatMap { provider in
        PushCounts.Lane.allCases.map { lane in
          ([("provider", provider.word), ("lane", lane.name)], times.publishToAnswer(provider, lane))
        }
      })
    format.histograms(
      "pushfleet_provider_answer_seconds", "Time from sending a push to the provider's answer.",
      Platform.allCases.map { ([("provider", $0.word)], times[answersOf: $0]) })
    format.histograms(
      "pushfleet_broker_confirm_seconds", "Time from a publication to the broker's confirm.", [([], times.confirms)])
  }

  // MARK: current state

  private mutating func addPresent() {
    let gauges: [(String, Int, String)] = [
      ("deliveries_in_hand", whole.inHand, "Requests and registry changes in hand, unacknowledged."),
      ("requests_ahead", whole.ahead, "Requests read ahead beyond the available room, unacknowledged and not in hand."),
      ("publications_unconfirmed", whole.unconfirmed, "Outcomes not yet confirmed."),
      ("publications_stuck", whole.stuck, "Outcomes that wait for queues which neither confirm nor refuse them."),
      ("pushes_in_flight", whole.inFlight, "Pushes waiting for their answer."),
      ("shards", report.shards, "Shards that the worker was started with."),
      ("shards_ready", report.shardsReady, "Shards connected to the broker."),
      ("draining", whole.isDraining ? 1 : 0, "1 while the worker drains and accepts no more messages."),
      ("reload_refused", report.health.isReloadRefused ? 1 : 0, "1 after a refused reload: the old configuration is in use."),
      ("broker_blocked", whole.isBrokerBlocked ? 1 : 0, "1 while a resource alarm blocks publications."),
    ]
    for (name, value, help) in gauges { format.gauge("pushfleet_\(name)", value, help) }
    format.gauge(
      "pushfleet_oldest_request_age_seconds", whole.oldestAge, "How long the oldest request has been in hand; 0 if none is.")
    format.gauge(
      "pushfleet_loop_lag_seconds", whole.loopLag, "The longest delay of a shard's event loop within the last half minute.")
    format.gauges(
      "pushfleet_registry_up", "1 while the registry answers; no sample if none is configured.",
      whole.registry.map { [([], $0.isUp ? 1 : 0)] } ?? [])
    format.gauges(
      "pushfleet_registry_writable", "1 while the registry accepts writes of every kind.",
      whole.registry.map { [([], $0.isWritable ? 1 : 0)] } ?? [])
  }

  private mutating func addPools() {
    let pools = report.pools
    func samples(_ value: (ShardReport.Pool) -> Int) -> [(MetricsFormat.Labels, Int)] {
      pools.map { ([("pool", $0.name)], value($0)) }
    }
    format.gauges(
      "pushfleet_credential_ok", "0 while the provider, or its token endpoint, refuses the credential.",
      samples { $0.isCredentialRefused ? 0 : 1 })
    format.gauges(
      "pushfleet_pool_in_trouble", "1 while the provider serves no push with it.", samples { $0.isInTrouble ? 1 : 0 })
    format.gauges(
      "pushfleet_provider_connections", "Open connections to the provider; a shared one counts with each pool.",
      samples(\.connections))
    format.gauges("pushfleet_provider_streams", "Pushes waiting for the provider's answer.", samples(\.streams))
    format.gauges(
      "pushfleet_credential_not_after_timestamp_seconds",
      "End of a certificate in Unix time; only the hundred that end first.",
      whole.expiries.prefix(100).map { ([("credential", $0.name)], Int($0.notAfter)) })
  }

  private mutating func addStates() {
    func app(_ id: [UInt8]) -> String { String(decoding: id, as: UTF8.self) }
    let open = Set(whole.openBreakers.map(app))
    let named = whole.series.dropFirst(AppSeries.others + 1)
    format.gauges(
      "pushfleet_breaker_open", "1 while so many of an application's tokens are refused that none is marked as dead.",
      (named + open.subtracting(named).sorted().prefix(100)).map { ([("app", $0)], open.contains($0) ? 1 : 0) })
    let orders = whole.controls.filter { $0.subject.kind != "webhook" && $0.mode(at: report.at) != .running }
    format.gauges(
      "pushfleet_control",
      "1 while an operator pauses or drains an application, a lane or a credential; the same in each worker.",
      orders.prefix(100).map { order in
        ([("kind", order.subject.kind), ("name", order.subject.text), ("state", order.mode(at: report.at).rawValue)], 1)
      })
    let holds = report.holds
    format.gauges(
      "pushfleet_hold_queue_requests_ready", "Requests ready in an application's hold queue, as last counted.",
      holds.compactMap { hold in hold.ready.map { ([("app", app(hold.app))], $0) } })
    format.gauges(
      "pushfleet_hold_queue_requests_in_hand", "Requests of an application's hold queue held unacknowledged.",
      holds.map { ([("app", app($0.app))], $0.inHand) })
    format.gauges(
      "pushfleet_queue_messages_ready",
      "Messages ready in the fleet's queues, as last reported by the broker; the same in each worker.",
      (whole.queues ?? []).map { ([("queue", $0.name)], $0.ready) })
    format.gauges(
      "pushfleet_campaigns", "Campaigns of the registry by state; the same in each worker.",
      whole.campaigns.map { part in CampaignState.allCases.map { ([("state", $0.name)], part.counts[$0] ?? 0) } } ?? [])
  }
}
