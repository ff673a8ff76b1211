import AMQP
import Broker
import DeviceRegistry
import Logging
import Providers
import PushCore
import Reactor
import Wire

@testable import Delivery
@testable import Settings

extension Applications {
  /// A single application without a credential.
  convenience init(_ id: [UInt8], rights: AppRights = AppRights()) {
    self.init()
    put(id, packages: [], rights: rights, senders: [])
  }
}

extension ShardTools {
  /// For a test of parts of a shard.
  init(
    apps: Applications, registry: RegistryClient? = nil, steps: [RetryStep] = [], outbox: Outbox? = nil, time: Turn
  ) {
    let log = Log(level: .error)
    self.init(
      apps: apps, registry: registry, publications: OutcomePublications(prefix: "push", apps: apps, steps: steps),
      outbox: outbox ?? Outbox(time: time, log: log), time: time, log: log)
  }
}

extension Pipeline {
  /// The parts of a shard, for a test that plays its broker and its providers.
  convenience init(
    apps: Applications, accounts: [PoolAccount] = [], outbox: Outbox, time: Turn, registry: RegistryClient? = nil,
    results: ResultsSetting = .none, attemptLimit: Int = 10, steps: [RetryStep] = [RetryStep(name: "1s", delay: 1_000)],
    breaker: Breaker = Breaker(share: 0.5, sample: 1_000),
    fanOut: FanOutSettings = FanOutSettings(pageSize: 1_000, prefetch: 4), resultLease: Int64 = 10_000,
    replyQueues: ReplyQueues? = nil, prefetch: Int = 1_000
  ) {
    var configuration = Self.configuration
    configuration.results = results
    configuration.retry.attempts = attemptLimit
    configuration.prefetch = prefetch
    configuration.fanOut = fanOut
    configuration.breaker.percent = Int(breaker.share * 100)
    configuration.breaker.sample = breaker.sample
    self.init(
      configuration, ShardTools(apps: apps, registry: registry, steps: steps, outbox: outbox, time: time), accounts: accounts,
      replyQueues: replyQueues ?? ReplyQueues(time: time), resultLease: resultLease)
  }

  private static let configuration: Configuration = {
    do {
      return try SendModel.configuration()
    } catch { fatalError("\(error)") }
  }()
}
