import AMQP
import Broker
import Foundation
import TestSupport
import Testing

@testable import Settings

/// Compares `docs/asyncapi.yaml` with the declared topology.
@Suite struct AsyncAPITests {
  let document: [String: Any]

  init() throws {
    let program = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1], encoding='utf-8')), sys.stdout)"
    let json = try ChildProcess.run(["/usr/bin/python3", "-c", program, Self.file.path]).output
    document = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
  }

  static let file = SchemaFiles.docs.appending(path: "asyncapi.yaml")
  static let topology = Topology(ladder: RetrySettings.defaultSteps.map { RetryStep(name: $0, delay: 1) })

  func objects(_ path: String...) -> [String: [String: Any]] {
    path.reduce(document as Any) { ($0 as? [String: Any])?[$1] ?? [:] } as? [String: [String: Any]] ?? [:]
  }

  func amqp(_ channel: [String: Any]) -> [String: Any] {
    (channel["bindings"] as? [String: Any])?["amqp"] as? [String: Any] ?? [:]
  }

  /// The channel's address, once for each value of its parameters.
  func addresses(_ channel: [String: Any]) -> [String] {
    guard let address = channel["address"] as? String else { return [] }
    let parameters = channel["parameters"] as? [String: [String: Any]] ?? [:]
    return parameters.reduce([address]) { addresses, parameter in
      guard let values = parameter.value["enum"] as? [String] else { return addresses }
      return addresses.flatMap { address in values.map { address.replacing("{\(parameter.key)}", with: $0) } }
    }
  }

  @Test("it is an AsyncAPI 3.0 document, and all its references resolve")
  func references() throws {
    #expect(document["asyncapi"] as? String == "3.0.0")
    var found = 0
    func visit(_ value: Any) throws {
      if let object = value as? [String: Any] {
        if let reference = object["$ref"] as? String {
          found += 1
          #expect(object.count == 1, "\(reference) has something beside it")
          if reference.hasPrefix("#/") {
            let target = reference.dropFirst(2).split(separator: "/").reduce(document as Any?) {
              ($0 as? [String: Any])?[String($1)]
            }
            #expect(target != nil, "\(reference)")
          } else {
            #expect(SchemaFiles.all.contains { reference == "./schema/\($0.name)" }, "\(reference)")
          }
        }
        for member in object.values { try visit(member) }
      } else if let array = value as? [Any] {
        for element in array { try visit(element) }
      }
    }
    try visit(document)
    #expect(found > 50)
  }

  @Test("a message uses each schema")
  func schemas() throws {
    let text = try String(contentsOf: Self.file, encoding: .utf8)
    for (name, _) in SchemaFiles.all { #expect(text.contains("./schema/\(name)"), "\(name)") }
  }

  /// Queues that workers declare when they need them, with the document's placeholders in the names.
  static let others = [
    topology.holdQueue("{app}"), topology.traceQueue, topology.binaryFeedbackQueue("{app}"),
    topology.controlExchange + ".{worker}",
  ]

  @Test(
    "its queues are exactly those of the topology and those declared when needed; all are durable except a worker's own"
  )
  func queues() {
    let channels = objects("channels").values.filter { amqp($0)["is"] as? String == "queue" }
    #expect(channels.flatMap(addresses).sorted() == (Self.topology.queues.map(\.name) + Self.others).sorted())
    for channel in channels {
      let isOwn = (channel["address"] as? String)?.hasPrefix(Self.topology.controlExchange) == true
      #expect(
        (amqp(channel)["queue"] as? [String: Bool]) == ["durable": !isOwn, "exclusive": isOwn, "autoDelete": isOwn])
    }
  }

  @Test("its exchanges have the topology's names and types, and every routing key of a binding is an address")
  func exchanges() {
    let channels = objects("channels").values.filter { amqp($0)["is"] as? String == "routingKey" }
    var types: [String: String] = [:]
    var keys: [String: [String]] = [:]
    for channel in channels {
      let exchange = amqp(channel)["exchange"] as? [String: Any] ?? [:]
      guard let name = exchange["name"] as? String else { continue }
      types[name] = exchange["type"] as? String
      keys[name, default: []] += addresses(channel)
    }
    let others = [(Self.topology.traceExchange, "direct"), (Self.topology.controlExchange, "fanout")]
    #expect(types == Dictionary(uniqueKeysWithValues: Self.topology.exchanges.map { ($0.name, $0.type) } + others))
    for binding in Self.topology.bindings {
      let key = binding.routingKey.replacing("#", with: "{app}")
      #expect(keys[binding.exchange]?.contains(key) == true, "\(binding.exchange) \(key)")
    }
  }

  @Test("each operation uses messages of its own channel")
  func operations() throws {
    for (name, operation) in objects("operations") {
      let reply = operation["reply"] as? [String: Any]
      for part in [operation, reply].compactMap(\.self) {
        let channel = try #require((part["channel"] as? [String: String])?["$ref"])
        let messages = (part["messages"] as? [[String: String]] ?? []).compactMap { $0["$ref"] }
        #expect(!messages.isEmpty && messages.allSatisfy { $0.hasPrefix(channel + "/messages/") }, "\(name)")
      }
      #expect(["send", "receive"].contains(operation["action"] as? String))
    }
  }
}
