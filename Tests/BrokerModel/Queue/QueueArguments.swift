import AMQP

struct QueueArguments {
  var kind = Kind.classic
  var messageTTL: Int64?
  var deliveryLimit: Int64?
  var maximumLength: Int64?
  var rejectsPublish = false
  var deadLetterExchange: String?
  var deadLetterRoutingKey: [UInt8]?
  /// True for at-least-once dead-lettering.
  var losesNoDeadLetter = false
  var isSingleActive = false

  enum Kind: String { case classic, quorum }

  /// Arguments that must be equal when a queue is declared again.
  private static let compared = [
    "x-queue-type", "x-message-ttl", "x-expires", "x-delivery-limit", "x-max-length", "x-max-length-bytes", "x-overflow",
    "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-single-active-consumer",
    "x-max-priority",
  ]

  init(_ table: FieldTable, queue: String) throws(Refusal) {
    func text(_ key: String) -> String? { table.string(key).map { String(decoding: $0, as: UTF8.self) } }
    func number(_ key: String) throws(Refusal) -> Int64? {
      guard let value = table[key] else { return nil }
      guard case .integer(let number) = value, number >= 0 else {
        throw .preconditionFailed("invalid arg '\(key)' for queue '\(queue)' in vhost '/'")
      }
      return number
    }
    if let name = text("x-queue-type") {
      guard let kind = Kind(rawValue: name) else {
        throw .preconditionFailed("invalid arg 'x-queue-type' for queue '\(queue)' in vhost '/'")
      }
      self.kind = kind
    }
    messageTTL = try number("x-message-ttl")
    deliveryLimit = try number("x-delivery-limit")
    maximumLength = try number("x-max-length")
    rejectsPublish = text("x-overflow")?.hasPrefix("reject-publish") ?? false
    deadLetterExchange = text("x-dead-letter-exchange")
    deadLetterRoutingKey = table.string("x-dead-letter-routing-key")
    // Without reject-publish, RabbitMQ uses at-most-once dead-lettering.
    losesNoDeadLetter =
      kind == .quorum && rejectsPublish && deadLetterExchange != nil && text("x-dead-letter-strategy") == "at-least-once"
    isSingleActive = table["x-single-active-consumer"] == .bool(true)
    let foreign = kind == .quorum ? ["x-max-priority"] : ["x-delivery-limit", "x-dead-letter-strategy"]
    for key in foreign where table[key] != nil {
      throw .preconditionFailed("invalid arg '\(key)' for queue '\(queue)' in vhost '/' of queue type \(kind.rawValue)")
    }
  }

  /// Refuses a declaration whose arguments differ from the existing queue's.
  static func check(_ received: FieldTable, equals current: FieldTable, queue: String) throws(Refusal) {
    try check(received, equals: current, keys: compared, of: "queue '\(queue)' in vhost '/'")
  }

  static func check(
    _ received: FieldTable, equals current: FieldTable, keys: [String], of subject: String
  ) throws(Refusal) {
    for key in keys where received[key] != current[key] {
      throw .preconditionFailed(
        "inequivalent arg '\(key)' for \(subject): received \(describe(received[key])) but current is \(describe(current[key]))"
      )
    }
  }

  private static func describe(_ value: FieldValue?) -> String {
    switch value {
    case nil: "none"
    case .string(let bytes)?: "the value '\(String(decoding: bytes, as: UTF8.self))' of type 'longstr'"
    case .integer(let number)?: "the value '\(number)' of type 'signedint'"
    case .bool(let value)?: "the value '\(value)' of type 'bool'"
    default: "another value"
    }
  }
}
