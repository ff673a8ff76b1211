import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Reactor
import Settings
import Wire

@testable import Worker

extension Pipeline {
  /// What a shard puts together, for a test that stands in for its broker and its providers.
  convenience init(
    apps: Applications, pools: [PoolLanes] = [], outbox: Outbox, time: Turn, registry: RegistryClient? = nil,
    results: ResultsSetting = .none, attemptLimit: Int = 10, steps: [RetryStep] = [RetryStep(name: "1s", delay: 1_000)],
    breaker: Breaker = Breaker(share: 0.5, sample: 1_000), pageSize: Int = 1_000, resultLease: Int64 = 10_000,
    replyQueues: ReplyQueues? = nil, prefetch: Int = 1_000
  ) {
    let log = Log(level: .error)
    let publications = OutcomePublications(prefix: "push", apps: apps, steps: steps)
    let marks = TokenMarks(apps: apps, breaker: breaker, registry: registry, time: time, log: log)
    let broadcasts = Broadcasts(
      registry: registry, publications: publications, marks: marks, pageSize: pageSize, resultLease: resultLease, time: time,
      log: log)
    self.init(
      apps: apps, pools: pools, intake: Intake(apps: apps, limits: RequestLimits()),
      publications: publications, outbox: outbox, lookUps: registry.map(LookUps.init), owners: registry.map(DeviceOwners.init),
      holds: Holds(apps: apps, time: time, log: log), marks: marks,
      collapses: Collapses(registry: registry, time: time),
      broadcasts: broadcasts, replyQueues: replyQueues ?? ReplyQueues(time: time),
      time: time, log: log, results: results, attemptLimit: attemptLimit, prefetch: prefetch, pagePrefetch: 4)
  }
}
