import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Reactor
import Settings
import Wire

@testable import Delivery

extension Pipeline {
  /// What a shard puts together, for a test that stands in for its broker and its providers.
  convenience init(
    apps: Applications, pools: [PoolLanes] = [], outbox: Outbox, time: Turn, registry: RegistryClient? = nil,
    results: ResultsSetting = .none, attemptLimit: Int = 10, steps: [RetryStep] = [RetryStep(name: "1s", delay: 1_000)],
    breaker: Breaker = Breaker(share: 0.5, sample: 1_000), pageSize: Int = 1_000, resultLease: Int64 = 10_000,
    replyQueues: ReplyQueues? = nil, prefetch: Int = 1_000
  ) {
    self.init(
      PipelineParts(
        apps: apps, pools: pools, intake: Intake(apps: apps, limits: RequestLimits()),
        messages: OutcomePublications(prefix: "push", apps: apps, steps: steps), outbox: outbox, registry: registry,
        replyQueues: replyQueues ?? ReplyQueues(time: time), breaker: breaker, time: time, log: Log(level: .error),
        results: results, attemptLimit: attemptLimit, prefetch: prefetch, pagePrefetch: 4, pageSize: pageSize,
        resultLease: resultLease))
  }
}
