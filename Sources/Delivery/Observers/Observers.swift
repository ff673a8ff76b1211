import AMQP
import Broker
import Logging
import Providers
import PushCore
import Wire

enum PushEvent {
  case sent(ProviderPool)
  case answered(ReplyMeaning, by: ProviderPool)
  case notSent(reason: String, by: ProviderPool)
  case unknown(reason: String, by: ProviderPool)
  /// The push waits for its next attempt, for the number of milliseconds.
  case postponed(PushError, Int64)
  /// The push waits, without counting an attempt.
  case parked
  /// A newer request has replaced the push; `failed` follows.
  case collapsed
  case failed(PushError)
  /// The push gets its own dead letter; `failed` follows.
  case refused(Rejection)
  case expired
}

enum RequestEvent {
  case taken
  case resolved
  case translated(Platform)
  /// The worker has the request already, or it was sent before.
  case duplicate
  case duplicatePage
  case pageBegun
  /// The number of the page's devices that are no longer registered.
  case unregistered(Int)
  case refused(Rejection)
  case late
  case expired(Int)
  case parked
  case quarantined
  case putToHold
  case retried
  /// The device with the dead letter; nil for all.
  case deadLetter(DeadLetter, Int?)
  case feedback
  case result
  case published(Publication.Kind, routingKey: [UInt8])
  case acknowledged(pools: [PoolLanes])
}

/// Watches requests and pushes without influencing them. Each observer has its own file and one line in each function here.
/// Confined to the shard's thread.
package final class Observers {
  package var figures: Figures
  package var trace: TraceObserver
  package var spans: SpanObserver
  package var steps: StepLog

  init(apps: Applications, prefix: String, time: Turn, log: Log) {
    figures = Figures(apps: apps, time: time)
    trace = TraceObserver(apps: apps, time: time, shard: log.shard)
    spans = SpanObserver(apps: apps, prefix: prefix, time: time)
    steps = StepLog(apps: apps, time: time, log: log)
  }

  func note(_ event: PushEvent, _ entry: InFlight, _ recipient: Int) {
    figures.note(event, entry, recipient)
    if trace.isOn || spans.isOn { entry.trace.note(event, recipient, at: trace.time.now) }
    if steps.isOn { steps.note(event, entry, recipient) }
  }

  func note(_ event: RequestEvent, _ entry: InFlight) {
    figures.note(event, entry)
    entry.trace.note(event)
    if case .acknowledged(let pools) = event {
      if trace.isOn { trace.ended(entry, pools) }
      if spans.isOn { spans.ended(entry, pools) }
    }
    steps.note(event, entry)
  }
}
