import AMQP
import Wire

package protocol ReplyBroker: AnyObject {
  var isReachable: Bool { get }
  func inspect(_ queue: String, _ completion: @escaping (ReplyQueues.Verdict?) -> Void)
}

/// Decides to which queues results and answers may go: direct reply-to, exclusive queues, and the queues in the setting.
///
/// If only the name is known, the broker is asked, one question at a time. ``Verdict/allowed`` is remembered for a minute,
/// ``Verdict/refused`` for a second, and ``Verdict/dropped`` not at all, because the owner may be about to declare the queue.
/// The caller keeps the waiting message and calls ``verdict(on:of:)`` again. Confined to the shard's thread.
package final class ReplyQueues {
  package enum Verdict {
    case allowed, refused
    /// The queue doesn't exist. The request is processed and its result is dropped, even if the queue is declared meanwhile.
    case dropped
    /// The broker must be asked. ``onAnswer`` follows.
    case unknown
    /// The producer has too many open questions. Try again later.
    case crowded

    /// Interprets the answer to a passive declaration; nil if it says nothing about the queue.
    /// - Parameter isConnected: false if the connection ended with the answer. Its end may have another cause.
    package init?(_ answer: Result<CommandAnswer, ConnectionEnd>, isConnected: Bool) {
      switch answer {
      // Every user with read permission can consume the queue.
      case .success: self = .refused
      case .failure where !isConnected: return nil
      // An exclusive queue is locked for every other connection.
      case .failure(.resourceLocked): self = .allowed
      case .failure(.notFound): self = .dropped
      case .failure(.accessRefused), .failure(.preconditionFailed), .failure(.closedByBroker): self = .refused
      case .failure: return nil
      }
    }
  }

  package weak var broker: (any ReplyBroker)?
  package var onAnswer: (() -> Void)?
  /// The queues in the setting. If nil, results may go to every queue except the fleet's own.
  package var listed: Set<[UInt8]>?
  private let time: Turn
  private var answers: [[UInt8]: (verdict: Verdict, until: MonotonicTime)] = [:]
  private var questions = Ring<[UInt8]>()
  /// The producer that first named each queue.
  private var asked: [[UInt8]: [UInt8]] = [:]
  private var open = Tally<[UInt8]>()
  private var isAsking = false

  /// Seconds for which an answer is valid: that a queue is allowed, and any other answer.
  static let (lifetime, lifetimeOfRefusal) = (60.0, 1.0)
  /// Delay in milliseconds of a request whose producer has too many open questions.
  package static let delayOfCrowded: Int64 = 1_000
  /// Maximum remembered answers and waiting questions. Further questions are asked a second later.
  static let most = 4_096
  /// Maximum open questions per producer, because waiting messages use shared memory.
  static let mostOfProducer = 64
  /// Prefixes of names that only the broker assigns: direct reply-to, and queues declared without a name. The latter have 128
  /// random bits, so only clients that got the name from its owner know it.
  private static let own = ["amq.rabbitmq.reply-to.", "amq.gen-"].map { Array($0.utf8) }

  package init(time: Turn) { self.time = time }

  /// - Parameters:
  ///   - queue: the `reply_to` of the message.
  ///   - producer: the user that named the queue.
  package func verdict(on queue: [UInt8]?, of producer: [UInt8]) -> Verdict {
    if let verdict = decided(queue) { return verdict }
    guard let queue else { return .allowed }
    guard asked[queue] == nil, asked.count < Self.most else { return .unknown }
    guard open[producer] < Self.mostOfProducer else { return .crowded }
    asked[queue] = producer
    open.add(to: producer)
    questions.append(queue)
    ask()
    return .unknown
  }

  /// The verdict without asking: a result goes only to a queue that is known to be allowed.
  package func knownVerdict(on queue: [UInt8]?) -> Verdict { decided(queue) == .allowed ? .allowed : .dropped }

  private func decided(_ queue: [UInt8]?) -> Verdict? {
    guard let listed, let queue, !queue.isEmpty else { return .allowed }
    if listed.contains(queue) || Self.own.contains(where: queue.starts(with:)) { return .allowed }
    if let answer = answers[queue], time.now < answer.until { return answer.verdict }
    guard let name = String(validating: queue, as: UTF8.self), name.unicodeScalars.allSatisfy({ $0.value >= 0x20 }) else {
      return .refused
    }
    return nil
  }

  /// Asks the next question. Also call it about once a second, for questions that couldn't be asked.
  package func ask() {
    guard !isAsking, let broker, broker.isReachable, let queue = questions.popFirst() else { return }
    isAsking = true
    // Deferred, because the caller isn't ready for the answer.
    time.schedule(after: 0) { [weak self] in self?.ask(broker, queue) }
  }

  private func ask(_ broker: any ReplyBroker, _ queue: [UInt8]) {
    broker.inspect(String(decoding: queue, as: UTF8.self)) { [weak self] verdict in
      guard let self else { return }
      isAsking = false
      if let producer = asked.removeValue(forKey: queue) { open.remove(from: producer) }
      if let verdict {
        if answers.count >= Self.most { answers.removeAll(keepingCapacity: true) }
        let seconds = verdict == .allowed ? Self.lifetime : Self.lifetimeOfRefusal
        answers[queue] = (verdict, time.now.advanced(bySeconds: seconds))
      }
      onAnswer?()
      if verdict == .dropped { answers[queue] = nil }
      ask()
    }
  }
}
