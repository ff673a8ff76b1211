import AMQP
import Broker
import Logging
import Providers
import PushCore
import Wire

/// What happens to one push of a request.
enum PushEvent {
  /// It is on a stream.
  case sent(ProviderPool)
  case answered(ReplyMeaning, by: ProviderPool)
  /// It was certainly not processed.
  case notSent(reason: String, by: ProviderPool)
  /// Nobody knows what became of it.
  case unknown(reason: String, by: ProviderPool)
  /// It waits for its next attempt, for so many milliseconds.
  case postponed(PushError, Int64)
  /// It waits, at no attempt's cost.
  case parked
  /// A newer one has taken its place; `failed` follows.
  case collapsed
  /// It has ended with this error.
  case failed(PushError)
  /// It gets a dead letter of its own; `failed` follows.
  case refused(Rejection)
  /// It has come too late.
  case expired
}

/// What happens to a request.
enum RequestEvent {
  /// It is in hand, admitted or about to be refused.
  case taken
  /// Its devices are known.
  case resolved
  case translated(Platform)
  /// It is in hand, or was delivered before.
  case duplicate
  /// The same page of a broadcast was begun before.
  case duplicatePage
  case pageBegun
  /// So many devices of its page are registered no more.
  case unregistered(Int)
  case refused(Rejection)
  /// It has come too late.
  case late
  /// So many of its devices, of which nothing else is known, have expired.
  case expired(Int)
  /// It waits, at no attempt's cost.
  case parked
  case quarantined
  case putToHold
  /// A copy goes to the ladder.
  case retried
  /// Which of its devices has the dead letter; nil for all.
  case deadLetter(DeadLetter, Int?)
  case feedback
  case result
  case published(Publication.Kind, routingKey: [UInt8])
  case acknowledged(pools: [PoolLanes])
}

/// Those that only watch requests and pushes; confined to the shard's thread. Each is in a file of its own, and in one line of the functions here that concern it.
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
    if trace.isOn || spans.isOn { entry.trace.note(event, recipient, at: trace.now) }
    if steps.isOn { steps.note(event, entry, recipient) }
  }

  func note(_ event: RequestEvent, _ entry: InFlight) {
    figures.note(event, entry)
    entry.trace.note(event)
    if case .acknowledged(let pools) = event {
      trace.ended(entry, pools)
      spans.ended(entry, pools)
    }
    steps.note(event, entry)
  }
}
