import AMQP
import Broker
import DeviceRegistry
import PushCore
import StatusHTTP
import Wire

/// Publishes changes of the registry and waits for their answers. Confined to the loop's thread.
final class ChangeService {
  /// The worker's answer; nil if the broker has the change and a worker will apply it. After a failure, the same change may be
  /// sent again.
  typealias Outcome = Result<JSONDocument?, Fault>

  private let context: GatewayContext
  let limits: RegistryLimits
  /// Seconds to wait for a worker's answer.
  private let wait: Double

  init(_ context: GatewayContext, wait: Int) {
    self.context = context
    limits = context.configuration.registryLimits
    self.wait = Double(max(wait, 1))
  }

  /// - Parameter then: called once.
  func change(_ change: [UInt8], app: [UInt8], then: @escaping (Outcome) -> Void) {
    var question: UInt64?
    let outcome = Awaited<Outcome>(context.loop.time) { [context] outcome in
      if let question { context.broker.forget(question) }
      then(outcome)
    }
    question = context.broker.expectAnswer { answer in
      outcome.end(as: .success(try? JSONDocument(answer, limits: JSONLimits(bytes: 4 << 20))))
    }
    publish(change, to: context.topology.registryExchange, Topology.changeKey, properties(app), question, outcome) { [wait] in
      outcome.end(after: wait, as: .success(nil))
    }
  }

  /// Makes a change for a call. If no worker answers, answers the call.
  /// - Parameters:
  ///   - late: the answer for a change that is accepted but not applied yet; nil for an error.
  ///   - then: gets the worker's answer.
  func change(
    _ change: [UInt8], app: [UInt8], for call: HTTPCall, late: HTTPAnswer? = nil, then: @escaping (JSONDocument) -> Void
  ) {
    self.change(change, app: app) { outcome in
      switch outcome {
      case .success(let document?): then(document)
      case .success(nil):
        call.answer(late ?? call.errorFormat.answer(.unavailable("the change is accepted but not applied yet")))
      case .failure(let fault): call.refuse(fault)
      }
    }
  }

  /// Publishes acknowledgements of devices; ends without an answer when the broker has confirmed them.
  /// - Parameter then: called once.
  func acknowledge(_ body: [UInt8], app: [UInt8], id: [UInt8]?, then: @escaping (Outcome) -> Void) {
    var properties = properties(app)
    if let id { properties.messageID = id }
    let outcome = Awaited<Outcome>(context.loop.time, then: then)
    let (exchange, key) = (context.topology.acknowledgementExchange, Topology.acknowledgementKey)
    publish(body, to: exchange, key, properties, nil, outcome) { outcome.end(as: .success(nil)) }
  }

  private func publish(
    _ body: [UInt8], to exchange: String, _ routingKey: String, _ properties: BasicProperties, _ question: UInt64?,
    _ outcome: Awaited<Outcome>, confirmed: @escaping () -> Void
  ) {
    outcome.end(after: GatewayBroker.confirmTime, as: .failure(.unavailable("the broker has not confirmed it in time")))
    context.broker.publish(
      exchange: Array(exchange.utf8), routingKey: Array(routingKey.utf8), properties: properties, body: body,
      question: question
    ) { confirmation in
      switch confirmation {
      case .confirmed: confirmed()
      case .refused(let reason), .unknown(let reason): outcome.end(as: .failure(.unavailable(reason)))
      }
    }
  }

  private func properties(_ app: [UInt8]) -> BasicProperties {
    var properties = BasicProperties()
    properties.describeJSON(UUIDText.random(), app: app, at: context.loop.wallClock / 1000)
    properties.userID = context.broker.user
    return properties
  }
}

extension BasicProperties {
  /// Sets those of a JSON object for workers. In place, because each copy costs twenty retains and releases.
  /// - Parameter seconds: Unix time.
  mutating func describeJSON(_ messageID: [UInt8], app: [UInt8], at seconds: Int64) {
    contentType = Array("application/json".utf8)
    deliveryMode = 2
    self.messageID = messageID
    appID = app
    timestamp = UInt64(clamping: seconds)
  }
}

extension JSONObject {
  /// A change that subscribes tokens to a topic, or unsubscribes them.
  static func topicChange(_ op: String, _ app: [UInt8], _ topic: [UInt8], tokens: [[UInt8]]) -> JSONObject {
    ["op": op, "app": app, "topic": topic, "tokens": tokens]
  }
}

extension JSONDocument {
  /// The error of each result in a worker's answer; nil for an answer without results.
  var resultErrors: [String?]? {
    value("results", of: root).map { results in
      elements(of: results).map { result in value("error", of: result).map { text($0) } }
    }
  }

  /// The value of a member of the root; nil if it is null or isn't there.
  func given(_ name: String) -> Int? { value(name, of: root).flatMap { kind($0) == .null ? nil : $0 } }

  /// The source text of a value.
  func raw(_ node: Int) -> [UInt8] {
    let end = source(node).upperBound + (kind(node) == .string ? 1 : 0)
    return Array(bytes[offset(node)..<end])
  }

  /// The strings of an array; nil if the value is something else.
  func texts(of node: Int) -> [[UInt8]]? {
    guard kind(node) == .array else { return nil }
    var texts: [[UInt8]] = []
    for element in elements(of: node) {
      guard kind(element) == .string else { return nil }
      texts.append(string(element))
    }
    return texts
  }
}
