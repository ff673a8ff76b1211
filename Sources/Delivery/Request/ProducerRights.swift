import AMQP
import Broker
import PushCore

/// Who has sent a request, which notes on it count, and what its producer may ask for.
struct ProducerRights {
  let apps: Applications
  let notes: NoteReader
  let replyQueues: ReplyQueues

  /// Whether its result may go to the queue that it names. Who may not send to the application has nothing asked for.
  func replyVerdict(_ entry: InFlight, _ queue: [UInt8]) -> ReplyQueues.Verdict {
    guard let producer = entry.source.producer else { return .allowed }
    if let app = entry.identity.app, apps[app].rights.refusal(of: producer) != nil {
      return replyQueues.knownVerdict(on: queue)
    }
    return replyQueues.verdict(on: queue, of: producer)
  }

  /// What its producer may not ask for. Checked once: what a worker sends on from here on is allowed.
  func refusal(of entry: InFlight) -> Rejection? {
    guard let producer = entry.source.producer, let app = entry.identity.app else { return nil }
    let rights = apps[app].rights
    if let refusal = rights.refusal(of: producer) ?? rights.refusal(ofTopic: entry.parsed?.topic) { return refusal }
    if entry.source.reply != .crowded { entry.source.producer = nil }
    return nil
  }
}
