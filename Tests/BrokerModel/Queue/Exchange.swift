import AMQP

final class Exchange {
  let name: String
  let kind: Kind
  let durable: Bool
  let autoDelete: Bool
  let `internal`: Bool
  let arguments: FieldTable
  private(set) var bindings: [Binding] = []
  /// The number of the broker's restarts since the declaration.
  private var restarts: UInt64 = 0

  enum Kind: String {
    case direct, fanout, topic, headers
    case consistentHash = "x-consistent-hash"
  }

  enum Destination: Equatable {
    case queue(String)
    case exchange(String)
  }

  struct Binding: Equatable {
    let destination: Destination
    let routingKey: [UInt8]
    let arguments: FieldTable
    /// For a consistent-hash exchange: the hash of the destination's name, and the share of messages, which the routing key
    /// states.
    let hash: UInt64
    let weight: Int?

    init(to destination: Destination, routingKey: [UInt8], arguments: FieldTable) {
      self.destination = destination
      self.routingKey = routingKey
      self.arguments = arguments
      hash =
        switch destination {
        case .queue(let name), .exchange(let name): StableHash.of(name.utf8)
        }
      weight = Int(String(decoding: routingKey, as: UTF8.self))
    }
  }

  init(name: String, kind: Kind, durable: Bool, autoDelete: Bool, internal: Bool, arguments: FieldTable) {
    self.name = name
    self.kind = kind
    self.durable = durable
    self.autoDelete = autoDelete
    self.internal = `internal`
    self.arguments = arguments
  }

  /// The exchange for messages that this one can't route.
  var alternate: String? { arguments.string("alternate-exchange").map { String(decoding: $0, as: UTF8.self) } }

  func bind(_ binding: Binding) throws(Refusal) {
    if kind == .consistentHash {
      guard let weight = binding.weight else {
        let key = String(decoding: binding.routingKey, as: UTF8.self)
        throw .preconditionFailed("The binding key must be an integer: <<\"\(key)\">>")
      }
      guard weight > 0 else { throw .preconditionFailed("The binding key must be greater than 0") }
    }
    if !bindings.contains(binding) { bindings.append(binding) }
  }

  func unbind(where isRemoved: (Binding) -> Bool) { bindings.removeAll(where: isRemoved) }

  /// The destinations for a message, each once, in the order of their bindings.
  func route(_ message: Message) -> [Destination] {
    if kind == .consistentHash { return hashed(message) }
    var destinations: [Destination] = []
    for binding in bindings where !destinations.contains(binding.destination) && matches(binding, message) {
      destinations.append(binding.destination)
    }
    return destinations
  }

  /// Moves message ids of a consistent-hash exchange to other destinations: RabbitMQ 3.10 keeps the ring in memory and builds it
  /// again in any order.
  func brokerRestarted() { restarts += 1 }

  /// The one destination for a message's id (weighted rendezvous hashing). RabbitMQ hashes in another way. A destination that
  /// is added takes messages from the others, and no other message moves.
  private func hashed(_ message: Message) -> [Destination] {
    let id = StableHash.of(message.properties.messageID ?? []) &+ restarts
    var best: (destination: Destination, score: Double)?
    for binding in bindings {
      let score = StableHash.logarithm(StableHash.mix(id ^ binding.hash)) / Double(binding.weight ?? 1)
      if score > best?.score ?? -.infinity { best = (binding.destination, score) }
    }
    return best.map { [$0.destination] } ?? []
  }

  private func matches(_ binding: Binding, _ message: Message) -> Bool {
    switch kind {
    case .direct: binding.routingKey == message.routingKey
    case .fanout: true
    case .topic: Self.matches(words(binding.routingKey), words(message.routingKey))
    case .headers: Self.matches(binding.arguments, message.properties.headers)
    case .consistentHash: false
    }
  }

  private func words(_ key: [UInt8]) -> ArraySlice<ArraySlice<UInt8>> {
    key.isEmpty ? [] : key.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)[...]
  }

  /// `*` matches one word, `#` any number. The row holds which prefixes of the key match the pattern so far.
  private static func matches(_ pattern: ArraySlice<ArraySlice<UInt8>>, _ key: ArraySlice<ArraySlice<UInt8>>) -> Bool {
    var row = [true] + Array(repeating: false, count: key.count)
    for word in pattern {
      let isHash = word.elementsEqual("#".utf8)
      let isStar = word.elementsEqual("*".utf8)
      var next = [isHash && row[0]]
      for (index, part) in key.enumerated() {
        next.append(isHash ? row[index + 1] || next[index] : row[index] && (isStar || part == word))
      }
      row = next
    }
    return row[key.count]
  }

  private static func matches(_ pattern: FieldTable, _ headers: FieldTable) -> Bool {
    let match = pattern.string("x-match").map { String(decoding: $0, as: UTF8.self) } ?? "all"
    let looksAtX = match.hasSuffix("-with-x")
    var all = true
    var any = false
    for (key, value) in pattern.entries where looksAtX ? !key.elementsEqual("x-match".utf8) : !key.starts(with: "x-".utf8) {
      let header = headers[String(decoding: key, as: UTF8.self)]
      if header != nil, value == .void || header == value { any = true } else { all = false }
    }
    return match.hasPrefix("any") ? any : all
  }
}
