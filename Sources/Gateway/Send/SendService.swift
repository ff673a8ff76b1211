import AMQP
import Broker
import DeviceRegistry
import PushCore
import Wire

/// Publishes each send request once and waits for its result. Confined to the loop's thread.
///
/// A request's message id is derived from its key and body, so this gateway, other gateways and the workers recognise a repeat.
final class SendService {
  enum Outcome {
    case result([UInt8])
    /// The broker has the request; its outcome is published under its id.
    case accepted
    /// The broker has not accepted the request.
    case refused(String)
    /// Accepted or not: the same request may be sent again.
    case unknown(String)
    /// The idempotency key came with another body before.
    case reused

    /// True if a repeat of the request gets the same answer.
    var isFinal: Bool {
      switch self {
      case .result(let body): WorkerResult(body)?.isPassing != true
      case .accepted: true
      case .refused, .unknown, .reused: false
      }
    }

    /// Nil if the broker has the request.
    var fault: Fault? {
      switch self {
      case .result, .accepted: nil
      case .refused(let reason), .unknown(let reason): .unavailable(reason)
      case .reused: .reused
      }
    }

    fileprivate var word: String {
      switch self {
      case .result: "result"
      case .accepted: "accepted"
      case .refused(let reason): "refused: \(reason)"
      case .unknown(let reason): "unknown: \(reason)"
      case .reused: "another body came with this idempotency key before"
      }
    }
  }

  typealias Completion = (_ messageID: [UInt8], _ outcome: Outcome) -> Void

  struct Request {
    var app: [UInt8]
    /// The sender's key. Only requests of the same key are repeats; it also sets the request's sender and environment.
    var key: GatewayKey
    var body: [UInt8]
    var isHigh: Bool
    var idempotencyKey: [UInt8]?
    var traceparent: [UInt8]?
    /// Seconds to wait for the result, at most the service's; nil for these. With a number, a later result is noted as long as the
    /// request is remembered.
    var wait: Int?
    /// Called before the answer if the broker has, or may have, this request. Not called for a repeat of an earlier one.
    var published: (() -> Void)?
  }

  /// Seconds for which a request with an idempotency key is remembered after its answer.
  private static let idempotency = 600.0
  /// Seconds to wait for another gateway's answer: the minimum, and the time beyond `wait`, in which that gateway ends its own
  /// waiting and stores its answer.
  private static let (leastAnswerTimeout, answerMargin) = (2.0, 1.0)
  /// The most results to wait for after their answers. Beyond these, a result is noted only within the service's time.
  private static let mostExpected = 16_384

  private let context: GatewayContext
  private let exchange: [UInt8]
  private static let (high, normal) = (Array("high".utf8), Array("normal".utf8))
  /// Most seconds to wait for a worker's result.
  let wait: Int
  /// Requests without and with an idempotency key.
  private let (plain, keyed): (RequestWindow, RequestWindow)

  /// - Parameters:
  ///   - retransmission: seconds for which a request without an idempotency key is remembered; 0 treats each request as new.
  ///   - sharesAll: also share such requests between gateways, which costs two registry writes each.
  init(_ context: GatewayContext, wait: Int, retransmission: Int, sharesAll: Bool) {
    self.context = context
    self.wait = wait
    exchange = Array(context.topology.sendExchange.utf8)
    func window(_ lifetime: Double, isShared: Bool) -> RequestWindow {
      let shared = context.registry.map {
        SharedRequests(
          registry: $0, loop: context.loop, lifetime: lifetime,
          answerTimeout: max(Double(wait) + Self.answerMargin, Self.leastAnswerTimeout))
      }
      return RequestWindow(lifetime: lifetime, shared: isShared ? shared : nil)
    }
    plain = window(Double(retransmission), isShared: sharesAll && retransmission > 0)
    keyed = window(Self.idempotency, isShared: true)
  }

  /// How a request is recognised.
  private struct Name {
    let window: RequestWindow
    /// SHA-256 of the sender's key, the application, and the idempotency key or the body.
    var identity: [UInt8]
    var digest: RequestDigest
    var messageID: [UInt8]
  }

  /// - Parameter then: called once; during this call if the answer is known.
  func send(_ request: Request, then: @escaping Completion) {
    let now = context.loop.now
    let isKeyed = request.idempotencyKey != nil
    let window = isKeyed ? keyed : plain
    guard window.lifetime > 0 else {
      let name = Name(window: window, identity: [], digest: RequestDigest([]), messageID: UUIDText.random())
      return publish(request, name, wait: request.wait ?? wait, then)
    }
    let digest = Digest.sha256(request.body)
    let identity = Self.identity(request, digest)
    var name = Name(window: window, identity: identity, digest: RequestDigest(identity), messageID: [])
    let body = RequestDigest(digest)
    plain.sweep(at: now)
    keyed.sweep(at: now)
    if let entry = window[name.digest] {
      guard entry.body == body else { return then(entry.messageID, .reused) }
      context.figures.repeated += 1
      name.messageID = entry.messageID
      switch entry.state {
      case .waiting: return window.join(name.digest, then)
      case .answered(let outcome): return then(entry.messageID, outcome)
      case .again: break
      case .failed: name.messageID = UUIDText.random()
      }
      window.resume(name.digest, as: name.messageID)
    } else {
      // A repeat in a later period is meant as a new request, also for the workers.
      let occasion = isKeyed ? 0 : context.loop.wallClock / Int64(window.lifetime * 1000)
      name.messageID = UUIDText.named(Digest.sha256(identity + digest + Array(String(occasion).utf8)))
      window.begin(name.digest, name.messageID, app: request.app, body: body, isSought: request.wait != nil)
    }
    claim(request, name, body: digest, then)
  }

  /// Publishes the request, unless another gateway is publishing it or has published it.
  private func claim(_ request: Request, _ name: Name, body: [UInt8], _ then: @escaping Completion) {
    let wait = request.wait ?? wait
    guard let shared = name.window.shared else { return publish(request, name, wait: wait, then) }
    let message = GatewayRequest.message(name.messageID, app: request.app)
    shared.claim(name.identity, message, body: body) { [weak self] outcome, isLate in
      guard let self else { return }
      guard let outcome else { return publish(request, name, wait: isLate ? 0 : wait, then) }
      if case .reused = outcome {} else { context.figures.repeated += 1 }
      settle(name, outcome, then)
    }
  }

  private static func identity(_ request: Request, _ body: [UInt8]) -> [UInt8] {
    let parts = [request.key.id, request.app, request.idempotencyKey ?? body]
    var text: [UInt8] = []
    text.reserveCapacity(parts.reduce(16) { $0 + $1.count })
    for part in parts {
      text.appendDecimal(part.count)
      text.append(0x3A)
      text.append(contentsOf: part)
    }
    return Digest.sha256(text)
  }

  /// - Parameter wait: seconds to wait for the result.
  private func publish(_ request: Request, _ name: Name, wait: Int, _ then: @escaping Completion) {
    let flight = Flight()
    let wait = Double(wait)
    let rest = request.wait == nil || self.wait == 0 ? 0 : name.window.lifetime
    let ended = Awaited<Outcome>(context.loop.time) { [weak self] outcome in
      guard let self else { return }
      if case .refused = outcome {} else { request.published?() }
      if let question = flight.question {
        // A stalled application may have filled the table. Results that come soon are noted even then.
        let rest = context.broker.expected < Self.mostExpected ? rest : min(rest, Double(self.wait) - wait)
        if case .accepted = outcome, rest > 0 {
          context.broker.forget(question, after: rest)
        } else {
          context.broker.forget(question)
        }
      }
      guard let shared = name.window.shared else { return settle(name, outcome, then) }
      shared.settle(name.identity, outcome) { [weak self] in self?.settle(name, $0, then) }
    }
    if wait + rest > 0 {
      flight.question = context.broker.expectAnswer { [weak self] result in
        if ended.isOver { self?.learn(name, result) }
        flight.result = result
        if flight.isConfirmed { ended.end(as: .result(result)) }
      }
    }
    ended.end(after: max(wait, GatewayBroker.confirmTime), as: .unknown("the broker has not confirmed it in time"))
    let began = context.loop.now
    context.broker.publish(
      exchange: exchange, routingKey: request.isHigh ? Self.high : Self.normal, properties: properties(request, name.messageID),
      body: request.body, question: flight.question
    ) { [weak self] outcome in
      guard let self else { return }
      switch outcome {
      case .confirmed:
        flight.isConfirmed = true
        if let result = flight.result { return ended.end(as: .result(result)) }
        if wait == 0 { return ended.end(as: .accepted) }
        ended.end(after: max(wait - context.loop.now.seconds(since: began), 0), as: .accepted)
      case .refused(let reason): ended.end(as: .refused(reason))
      case .unknown(let reason): ended.end(as: .unknown(reason))
      }
    }
  }

  /// One publication and its state.
  private final class Flight {
    var question: UInt64?
    var isConfirmed = false
    var result: [UInt8]?
  }

  private func settle(_ name: Name, _ outcome: Outcome, _ then: Completion) {
    let state: RequestWindow.State? =
      switch outcome {
      case .result, .accepted: outcome.isFinal ? .answered(outcome) : .failed(outcome)
      case .unknown: .again
      case .refused, .reused: nil
      }
    let now = context.loop.now
    context.log.debug("request", ["message_id": name.messageID, "outcome": outcome.word])
    let others = name.window.end(name.digest, state, at: now)
    then(name.messageID, outcome)
    for other in others { other(name.messageID, outcome) }
  }

  /// Notes a result that came after the answer.
  private func learn(_ name: Name, _ result: [UInt8]) {
    guard let shared = name.window.shared else { return name.window.learn(name.digest, .result(result)) }
    shared.learn(name.identity, result) { name.window.learn(name.digest, .result(result)) }
  }

  /// What this gateway remembers of a message; nil for nothing.
  func state(ofMessage messageID: [UInt8], app: [UInt8]) -> RequestWindow.State? {
    plain.sweep(at: context.loop.now)
    keyed.sweep(at: context.loop.now)
    return plain.state(ofMessage: messageID, app: app) ?? keyed.state(ofMessage: messageID, app: app)
  }

  private func properties(_ request: Request, _ id: [UInt8]) -> BasicProperties {
    var properties = BasicProperties()
    properties.describeJSON(id, app: request.app, at: context.loop.wallClock / 1000)
    properties.userID = context.broker.user
    if let sender = request.key.sender { properties.headers.append(MessageHeaders.sender, .string(sender)) }
    if let environment = request.key.environment?.name {
      properties.headers.append(MessageHeaders.environment, .string(Array(environment.utf8)))
    }
    if let traceparent = request.traceparent, traceparent.count <= 255 {
      properties.headers.append("traceparent", .string(traceparent))
    }
    return properties
  }
}
