import Broker
import DeviceRegistry
import Wire

/// What a worker asks others for now and then, only to show it: how many messages are ready in the fleet's queues, how many campaigns there
/// are of each state, and how the latest ones stand.
final class Survey {
  private(set) var campaigns: CampaignSurvey?
  private(set) var queues: [ShardReport.Queue]?
  private let names: [String]
  private let broker: BrokerSession
  private let registry: RegistryClient?
  private let time: Turn
  private var nextQueues = MonotonicTime(nanoseconds: 0)
  private var nextCampaigns = MonotonicTime(nanoseconds: 0)
  /// An answer is waited for.
  private var isCounting = false
  private var isAsking = false

  /// Seconds between two looks.
  private static let pauseOfQueues = 5.0
  private static let pauseOfCampaigns = 15.0
  private static let pauseAfterFailure = 15.0
  /// Campaigns that are named.
  private static let mostNamed = 10

  init(_ topology: Topology, broker: BrokerSession, registry: RegistryClient?, time: Turn) {
    names = topology.queues.map(\.name)
    self.broker = broker
    self.registry = registry
    self.time = time
  }

  /// To be called about once a second.
  func look() {
    if !isCounting, time.now >= nextQueues { countQueues() }
    if !isAsking, time.now >= nextCampaigns { surveyCampaigns() }
  }

  private func countQueues() {
    isCounting = true
    broker.countMessages(of: names) { [weak self] counts in
      guard let self else { return }
      isCounting = false
      queues = counts.map { zip(names, $0).map { .init(name: $0, ready: $1) } }
      // RabbitMQ logs a question that names a queue which isn't there as an error.
      nextQueues = time.now.advanced(bySeconds: counts == nil ? Self.pauseAfterFailure : Self.pauseOfQueues)
    }
  }

  private func surveyCampaigns() {
    guard let registry else { return }
    isAsking = true
    let call = RegistryCall.read { store in
      CampaignSurvey(counts: try store.countCampaigns(), latest: try store.campaigns(limit: Self.mostNamed))
    }
    registry.call(call) { [weak self] result in
      guard let self else { return }
      isAsking = false
      campaigns = try? result.get()
      nextCampaigns = time.now.advanced(bySeconds: Self.pauseOfCampaigns)
    }
  }
}
