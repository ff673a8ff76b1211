import AMQP
import Broker
import PushCore

/// Checks the rights of a request's producer, and decides which notes are the fleet's.
struct ProducerRights {
  let apps: Applications
  let notes: NoteReader
  let replyQueues: ReplyQueues

  /// Whether the result may go to the queue. The broker isn't asked for a producer that may not send to the application.
  func replyVerdict(_ entry: InFlight, _ queue: [UInt8]) -> ReplyQueues.Verdict {
    guard let producer = entry.source.producer else { return .allowed }
    if let app = entry.identity.app, apps[app].rights.refusal(of: producer) != nil {
      return replyQueues.knownVerdict(on: queue)
    }
    return replyQueues.verdict(on: queue, of: producer)
  }

  /// The rejection if the producer lacks a right. The check is done once; later copies by workers pass.
  func refusal(of entry: InFlight) -> Rejection? {
    guard let producer = entry.source.producer, let app = entry.identity.app else { return nil }
    if apps[app].rights.producers != nil, let refusal = apps[app].rights.refusal(of: producer) { return refusal }
    if let topic = entry.request?.topic, let refusal = apps[app].rights.refusal(ofTopic: topic) { return refusal }
    if case .crowded = entry.source.reply { return nil }
    entry.source.producer = nil
    return nil
  }
}
