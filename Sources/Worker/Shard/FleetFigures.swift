import Broker
import DeviceRegistry
import Wire

/// Numbers of campaigns by state, and the latest campaigns.
struct CampaignSummary: Sendable {
  var counts: [CampaignState: Int]
  var latest: [Campaign]
}

/// Figures that are only displayed: ready messages of the fleet's queues, campaigns by state, and the latest campaigns.
final class FleetFigures {
  private(set) var campaigns: CampaignSummary?
  private(set) var queues: [ShardReport.Queue]?
  private let names: [String]
  private let broker: BrokerSession
  private let registry: RegistryClient?
  private let time: Turn
  private var nextQueues = MonotonicTime(nanoseconds: 0)
  private var nextCampaigns = MonotonicTime(nanoseconds: 0)
  private var isCounting = false
  private var isAsking = false

  /// Seconds between two queries.
  private static let pauseOfQueues = 5.0
  private static let pauseOfCampaigns = 15.0
  private static let pauseAfterFailure = 15.0
  private static let mostNamed = 10

  init(_ topology: Topology, broker: BrokerSession, registry: RegistryClient?, time: Turn) {
    names = topology.queues.map(\.name)
    self.broker = broker
    self.registry = registry
    self.time = time
  }

  /// Call about once a second.
  func look() {
    if !isCounting, time.now >= nextQueues { countQueues() }
    if !isAsking, time.now >= nextCampaigns { countCampaigns() }
  }

  private func countQueues() {
    isCounting = true
    broker.countMessages(of: names[...]) { [weak self] counts in
      guard let self else { return }
      isCounting = false
      queues = counts.map { zip(names, $0).map { .init(name: $0, ready: $1) } }
      // Asking for a missing queue leaves an error in RabbitMQ's log.
      nextQueues = time.now.advanced(bySeconds: counts == nil ? Self.pauseAfterFailure : Self.pauseOfQueues)
    }
  }

  private func countCampaigns() {
    guard let registry else { return }
    isAsking = true
    let call = RegistryCall.read { store in
      CampaignSummary(counts: try store.countCampaigns(), latest: try store.campaigns(limit: Self.mostNamed))
    }
    registry.call(call) { [weak self] result in
      guard let self else { return }
      isAsking = false
      campaigns = try? result.get()
      nextCampaigns = time.now.advanced(bySeconds: Self.pauseOfCampaigns)
    }
  }
}
