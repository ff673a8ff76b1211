import AMQP

final class Exchange {
  let name: String
  let kind: Kind
  let durable: Bool
  let autoDelete: Bool
  let `internal`: Bool
  let arguments: FieldTable
  private(set) var bindings: [Binding] = []

  enum Kind: String { case direct, fanout, topic, headers }

  struct Binding: Equatable {
    var queue: String
    var routingKey: [UInt8]
    var arguments: FieldTable
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

  func bind(_ binding: Binding) { if !bindings.contains(binding) { bindings.append(binding) } }
  func unbind(queue: String) { bindings.removeAll { $0.queue == queue } }

  /// The queues for a message, each once, in the order of their bindings.
  func route(_ message: Message) -> [String] {
    var queues: [String] = []
    for binding in bindings where !queues.contains(binding.queue) && matches(binding, message) { queues.append(binding.queue) }
    return queues
  }

  private func matches(_ binding: Binding, _ message: Message) -> Bool {
    switch kind {
    case .direct: binding.routingKey == message.routingKey
    case .fanout: true
    case .topic: Self.matches(words(binding.routingKey), words(message.routingKey))
    case .headers: Self.matches(binding.arguments, message.properties.headers)
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
