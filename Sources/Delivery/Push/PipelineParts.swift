import Broker
import DeviceRegistry
import Logging
import PushCore
import Settings
import Wire

/// What a shard's pipeline works with.
package struct PipelineParts {
  var apps: Applications
  var pools: [PoolLanes]
  var intake: Intake
  var messages: OutcomePublications
  var outbox: Outbox
  /// nil where none is configured.
  var registry: RegistryClient?
  var replyQueues: ReplyQueues
  /// As each application's begins.
  var breaker: Breaker
  var time: Turn
  var log: Log
  var results: ResultsSetting
  /// As ``Configuration/deadLetters``.
  var deadLetters: Set<PushError>
  /// Attempts at a push until it is a dead letter.
  var attemptLimit: Int
  /// Requests of a lane in hand at most.
  var prefetch: Int
  /// Pages that a lane brings.
  var pagePrefetch: Int
  /// Devices on a page.
  var pageSize: Int
  /// Milliseconds for which a worker that has claimed a campaign's result may be about to publish it.
  var resultLease: Int64
  /// Where nothing becomes a page, nil.
  var pages: RichPageSettings?

  package init(
    apps: Applications, pools: [PoolLanes] = [], intake: Intake, messages: OutcomePublications, outbox: Outbox,
    registry: RegistryClient? = nil, replyQueues: ReplyQueues, breaker: Breaker, time: Turn, log: Log,
    results: ResultsSetting = .none, deadLetters: Set<PushError> = [], attemptLimit: Int, prefetch: Int, pagePrefetch: Int,
    pageSize: Int, resultLease: Int64 = 10_000, pages: RichPageSettings? = nil
  ) {
    self.apps = apps
    self.pools = pools
    self.intake = intake
    self.messages = messages
    self.outbox = outbox
    self.registry = registry
    self.replyQueues = replyQueues
    self.breaker = breaker
    self.time = time
    self.log = log
    self.results = results
    self.deadLetters = deadLetters
    self.attemptLimit = attemptLimit
    self.prefetch = prefetch
    self.pagePrefetch = pagePrefetch
    self.pageSize = pageSize
    self.resultLease = resultLease
    self.pages = pages
  }
}
