import AMQP
import Wire

/// What the broker says of a queue that results are to go to.
package enum ReplyQueueKind {
  /// Another connection's own.
  case exclusive
  /// Anybody's who may read from it.
  case shared
  /// There is none.
  case missing

  /// Of the answer to a passive declaration; nil where the broker has said nothing of the queue.
  /// - Parameter isConnected: the connection has not ended with it. What ends a connection may be about something else.
  package init?(_ answer: Result<CommandAnswer, ConnectionEnd>, isConnected: Bool) {
    switch answer {
    case .success: self = .shared
    case .failure where !isConnected: return nil
    // An exclusive queue is locked for every connection but its own.
    case .failure(.resourceLocked): self = .exclusive
    case .failure(.notFound): self = .missing
    case .failure(.accessRefused), .failure(.preconditionFailed), .failure(.closedByBroker): self = .shared
    case .failure: return nil
    }
  }
}

package protocol ReplyBroker: AnyObject {
  /// There is a connection to ask on.
  var isReachable: Bool { get }
  /// What the queue is; nil where the broker couldn't be asked.
  func inspect(_ queue: String, _ completion: @escaping (ReplyQueueKind?) -> Void)
}

/// Which queues results and answers may go to: direct reply-to, a connection's own, and those that the setting lists.
///
/// Of a queue that only its name is known of, the broker is asked, one question at a time. That it is exclusive is remembered for a minute, that
/// it isn't for a second, and that it isn't there not at all: its owner may be about to declare it. What
/// waits for an answer is kept by whoever has it in hand, who asks again by ``verdict(on:of:)``. Confined to the shard's thread.
package final class ReplyQueues {
  package enum Verdict {
    case allowed, refused
    /// There is no such queue: what is asked for is done, and its result goes nowhere, whoever declares the queue meanwhile.
    case dropped
    /// ``onAnswer`` follows.
    case unknown
    /// Too many questions of the producer's are open: to be asked for later.
    case crowded
  }

  package weak var broker: (any ReplyBroker)?
  /// The broker has answered one question.
  package var onAnswer: (() -> Void)?
  /// What the setting lists; nil where it is absent, and results may go to every queue that isn't the fleet's own.
  package var listed: Set<[UInt8]>?
  private let time: Turn
  private var answers: [[UInt8]: (kind: ReplyQueueKind, until: MonotonicTime)] = [:]
  /// To be asked for, in this order.
  private var questions = Ring<[UInt8]>()
  /// By whom each was first named.
  private var asked: [[UInt8]: [UInt8]] = [:]
  /// How many of them each producer has named.
  private var open = Tally<[UInt8]>()
  private var isAsking = false

  /// Seconds that an answer holds: that a queue is exclusive, and that it isn't.
  static let (lifetime, lifetimeOfRefusal) = (60.0, 1.0)
  /// Milliseconds for which a request is put off whose producer names too many queues.
  package static let delayOfCrowded: Int64 = 1_000
  /// Answers that are remembered, and questions that wait. What finds no room is asked again a second later.
  static let most = 4_096
  /// Questions of one producer that are open: what waits for one takes up room that others share.
  static let mostOfProducer = 64
  /// Names that the broker alone gives: to the replies of a client that consumes them directly, and to a queue that was declared without a
  /// name. Only whom its owner gives it to knows the latter's 128 random bits.
  private static let own = ["amq.rabbitmq.reply-to.", "amq.gen-"].map { Array($0.utf8) }

  package init(time: Turn) { self.time = time }

  /// - Parameters:
  ///   - queue: what `reply_to` says.
  ///   - producer: who has named it.
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

  /// Without a question: a result goes only where that is known to be allowed.
  package func knownVerdict(on queue: [UInt8]?) -> Verdict { decided(queue) == .allowed ? .allowed : .dropped }

  /// What needs no question; nil for the rest.
  private func decided(_ queue: [UInt8]?) -> Verdict? {
    guard let listed, let queue, !queue.isEmpty else { return .allowed }
    if listed.contains(queue) || Self.own.contains(where: queue.starts(with:)) { return .allowed }
    if let answer = answers[queue], time.now < answer.until { return Self.verdict(on: answer.kind) }
    guard let name = String(validating: queue, as: UTF8.self), name.unicodeScalars.allSatisfy({ $0.value >= 0x20 }) else {
      return .refused
    }
    return nil
  }

  private static func verdict(on kind: ReplyQueueKind) -> Verdict {
    switch kind {
    case .exclusive: .allowed
    case .shared: .refused
    case .missing: .dropped
    }
  }

  /// To be called about once a second as well, for what couldn't be asked.
  package func ask() {
    guard !isAsking, let broker, broker.isReachable, let queue = questions.popFirst() else { return }
    isAsking = true
    // In a turn of its own: who has just asked is not ready to hear.
    time.schedule(after: 0) { [weak self] in self?.ask(broker, queue) }
  }

  private func ask(_ broker: any ReplyBroker, _ queue: [UInt8]) {
    broker.inspect(String(decoding: queue, as: UTF8.self)) { [weak self] kind in
      guard let self else { return }
      isAsking = false
      if let producer = asked.removeValue(forKey: queue) { open.remove(from: producer) }
      if let kind {
        if answers.count >= Self.most { answers.removeAll(keepingCapacity: true) }
        let seconds = kind == .exclusive ? Self.lifetime : Self.lifetimeOfRefusal
        answers[queue] = (kind, time.now.advanced(bySeconds: seconds))
      }
      onAnswer?()
      if kind == .missing { answers[queue] = nil }
      ask()
    }
  }
}
