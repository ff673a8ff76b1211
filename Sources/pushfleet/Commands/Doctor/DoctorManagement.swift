import AMQP
import Broker
import Foundation
import Providers
import Reactor
import Settings
import TLS

/// Reads bindings and policies, which AMQP doesn't show, from RabbitMQ's management API.
final class DoctorManagement: DoctorLook {
  private static let timeout = 10.0
  private static let longestAnswer = 16 << 20
  private static let pageSize = 500
  private static let mostPages = 40

  private let topology: Topology
  private let address: HTTPAddress
  private let broker: BrokerAddress
  private let target: DialTarget

  /// - Parameter broker: its user and virtual host are used; an `https` address is verified with its CA if it is `amqps`.
  init(_ topology: Topology, _ address: HTTPAddress, _ broker: BrokerAddress) throws {
    self.topology = topology
    self.address = address
    self.broker = broker
    let tls: TLSClientContext? = address.isTLS ? try broker.tls ?? TLSClientContext(trust: .system()) : nil
    target = DialTarget(address.endpoint, tls: tls, timeout: Self.timeout)
    try super.init()
  }

  func look() -> [Finding] {
    if broker.uri.isExternal {
      report(
        .warning, "it needs a password, and `broker` has none; bindings and policies are unknown",
        "run `doctor` with an address of `broker` that has a user and a password")
      return findings
    }
    do throws(Problem) {
      try lookAtPolicies()
      try lookAtBindings()
    } catch { report(.unreachable, "\(error.sentence); bindings and policies are unknown", error.remedy) }
    return findings
  }

  /// Ends the look.
  private struct Problem: Error {
    var sentence: String
    var remedy = "check the address; the broker's own is http://HOST:15672"

    static var notTheAPI: Problem { Problem(sentence: "it answers something else than the management API does") }
  }

  // MARK: policies

  private func lookAtPolicies() throws(Problem) {
    for page in 1...Self.mostPages {
      let query = [
        "page=\(page)", "page_size=\(Self.pageSize)", "use_regex=true",
        "name=" + HTTPFetch.encoded("^\(NSRegularExpression.escapedPattern(for: topology.prefix))\\."),
        "columns=name,policy,operator_policy,effective_policy_definition",
      ]
      let answer = try get("/api/queues/\(virtualHost)?\(query.joined(separator: "&"))") as? [String: Any]
      guard let answer, let items = answer["items"] as? [[String: Any]] else { throw .notTheAPI }
      for item in items { judge(item) }
      if page >= answer["page_count"] as? Int ?? 1 { break }
    }
    reportPolicies()
  }

  private var losses: [LossyPolicy: [String]] = [:]

  private func judge(_ item: [String: Any]) {
    guard let queue = item["name"] as? String, topology.isOwn(queue: queue), queue != topology.traceQueue,
      let definition = item["effective_policy_definition"] as? [String: Any]
    else { return }
    let names = [item["policy"], item["operator_policy"]].compactMap { $0 as? String }.map { "`\($0)`" }.joined(
      separator: " or ")
    for effect in LossyPolicy.effects(of: definition, isList: topology.isList(queue: queue)) {
      losses[LossyPolicy(policy: names, effect: effect), default: []].append(queue)
    }
  }

  private func reportPolicies() {
    for (policy, queues) in losses.sorted(by: { ($0.key.policy, $0.key.effect) < ($1.key.policy, $1.key.effect) }) {
      let shown = queues.sorted().prefix(5).joined(separator: ", ") + (queues.count > 5 ? " and \(queues.count - 5) more" : "")
      report(
        .error, "the policy \(policy.policy) \(policy.effect): \(shown)",
        "remove that from the policy, or exclude the fleet's queues from it: deploy/rabbitmq/README.md")
    }
    if losses.isEmpty { report(.ok, "no policy loses messages of the fleet's queues", nil) }
  }

  // MARK: bindings

  private func lookAtBindings() throws(Problem) {
    var missing: [String] = []
    let queues = Set(topology.queues.map(\.name))
    for exchange in topology.exchanges.map(\.name) {
      let answer = try get("/api/exchanges/\(virtualHost)/\(HTTPFetch.encoded(exchange))/bindings/source")
      guard let answer = answer as? [[String: Any]] else { throw .notTheAPI }
      let found = answer.compactMap(QueueBinding.init)
      let wanted = topology.bindings.filter { $0.exchange == exchange }.map(QueueBinding.init)
      missing += wanted.filter { !found.contains($0) }.map { "\($0.queue) to \(exchange)" }
      for binding in wanted where found.count(where: { $0 == binding }) > 1 {
        report(
          .error, "\(binding.queue) is bound to \(exchange) as a queue and as an exchange: requests are copied to two queues",
          BrokerRights.sameNumber)
      }
      for extra in found where queues.contains(extra.queue) && !wanted.contains(extra) {
        let key = extra.key.isEmpty ? "" : " by \"\(extra.key)\""
        report(
          .warning, "\(extra.queue) is bound to \(exchange)\(key) by an unknown binding: messages may arrive twice",
          "remove the binding on the management page unless it is needed")
      }
    }
    if missing.isEmpty {
      report(.ok, "all \(topology.bindings.count) bindings are there", nil)
    } else {
      report(
        .error, "bindings are missing, so published messages don't reach their queues: \(missing.joined(separator: ", "))",
        "run `pushfleet topology`, or start a worker")
    }
  }

  // MARK: asking

  private var virtualHost: String { HTTPFetch.encoded(broker.uri.virtualHost) }

  /// - Returns: the answer as Foundation reads JSON; nil if it is not JSON.
  private func get(_ path: String) throws(Problem) -> Any? {
    var request = HTTPFetch.Request(
      method: "GET", host: address.authority, path: address.path + path, timeout: Self.timeout,
      longestAnswer: Self.longestAnswer)
    let credentials = Data("\(broker.uri.user):\(broker.uri.password)".utf8).base64EncodedString()
    request.headers = [("Authorization", "Basic \(credentials)"), ("Accept", "application/json")]
    switch ask(request, target) {
    case .answered(200, let body):
      guard let body else {
        throw Problem(sentence: "its answer is cut short, or longer than \(Self.longestAnswer >> 20) MiB")
      }
      return try? JSONSerialization.jsonObject(with: Data(body))
    case .answered(401, _), .answered(403, _):
      throw Problem(
        sentence: "it refuses the user of `broker`",
        remedy: "give it the tag: `rabbitmqctl set_user_tags \(broker.uri.user) management`, at least while you look")
    case .answered(404, _): throw Problem(sentence: "there is no such virtual host or no management API at this address")
    case .answered(let status, _): throw Problem(sentence: "it answers with status \(status)")
    case .failed(let reason):
      throw Problem(
        sentence: "it can't be reached: \(reason)",
        remedy: "check the address, and that the plugin is on: `rabbitmq-plugins enable rabbitmq_management`")
    }
  }

  private func report(_ level: Finding.Level, _ sentence: String, _ remedy: String?) {
    report(level, "management \(address.authority)", sentence, remedy)
  }
}

/// A policy that makes a queue lose messages.
struct LossyPolicy: Hashable {
  /// The name of the policy or operator policy; both names if there are both.
  var policy: String
  var effect: String

  /// The effects of a policy's definition that lose messages. A policy's overflow replaces the queue's own. A length limit
  /// without an overflow in the policy only refuses publications.
  /// - Parameter isList: true for a queue that may drop its oldest messages.
  static func effects(of definition: [String: Any], isList: Bool) -> [String] {
    var effects: [String] = []
    let isBounded = definition["max-length"] != nil || definition["max-length-bytes"] != nil
    if let overflow = definition["overflow"] as? String, overflow != "reject-publish", isBounded, !isList {
      effects.append("drops messages beyond a length (overflow \(overflow))")
    }
    if let ttl = definition["message-ttl"] { effects.append("lets messages expire (message-ttl \(ttl) ms)") }
    if let expires = definition["expires"] {
      effects.append("deletes unused queues with their messages (expires \(expires) ms)")
    }
    if let limit = definition["delivery-limit"] {
      effects.append("gives up messages that workers return (delivery-limit \(limit))")
    }
    return effects
  }
}

/// A queue's binding, from the topology or the management API.
struct QueueBinding: Equatable {
  var queue: String
  var key: String
  /// Text arguments by name; the fleet's bindings have no others.
  var arguments: [String: String]

  init(_ binding: (queue: String, exchange: String, routingKey: String, arguments: FieldTable)) {
    queue = binding.queue
    key = binding.routingKey
    arguments = [:]
    for (name, value) in binding.arguments.entries {
      if case .string(let text) = value {
        arguments[String(decoding: name, as: UTF8.self)] = String(decoding: text, as: UTF8.self)
      }
    }
  }

  /// A binding of a lane's exchange, which has the name of the lane's first queue, is like the binding of that queue.
  init?(_ object: [String: Any]) {
    guard let queue = object["destination"] as? String, let key = object["routing_key"] as? String else { return nil }
    self.queue = queue
    self.key = key
    arguments = (object["arguments"] as? [String: Any] ?? [:]).mapValues { $0 as? String ?? "\($0)" }
  }
}
