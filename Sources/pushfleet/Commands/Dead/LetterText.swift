import AMQP
import Foundation
import PushCore

/// One dead letter in full.
extension Letter {
  var json: [UInt8] {
    let properties = delivery.properties
    var line = JSONObjectWriter()
    line.set("message_id", properties.messageID)
    line.set("app", properties.appID)
    line.set("error", error)
    line.set("reason", reason)
    line.set("status", status)
    line.set("attempts", attempts)
    line.set("failed_at", time: failedAt)
    line.set("origin", origin)
    line.set("exchange", delivery.exchange)
    line.set("routing_key", delivery.routingKey)
    line.set("properties") { Self.append(properties, to: &$0) }
    line.set("headers") { Self.append(properties.headers, to: &$0) }
    if properties.hasUnreadableHeaders { line.set("unreadable_headers", flag: true) }
    line.set("body_size", Int64(clamping: delivery.bodySize))
    if String(validating: delivery.body, as: UTF8.self) != nil {
      line.set("body", delivery.body)
    } else {
      line.set("body_base64", Data(delivery.body).base64EncodedString())
    }
    return line.closed()
  }

  private static func append(_ properties: BasicProperties, to line: inout JSONObjectWriter) {
    for (name, value) in texts(properties) {
      if let value { line.set(name, value) }
    }
    for (name, value) in numbers(properties) {
      if let value { line.set(name, value) }
    }
  }

  private static func append(_ headers: FieldTable, to line: inout JSONObjectWriter) {
    var seen: Set<[UInt8]> = []
    for (name, value) in headers.entries where seen.insert(name).inserted {
      line.set(String(decoding: name, as: UTF8.self), raw: value.json)
    }
  }

  private static func texts(_ properties: BasicProperties) -> [(String, [UInt8]?)] {
    [
      ("content_type", properties.contentType), ("content_encoding", properties.contentEncoding),
      ("correlation_id", properties.correlationID), ("reply_to", properties.replyTo),
      ("expiration", properties.expiration), ("message_id", properties.messageID), ("type", properties.type),
      ("user_id", properties.userID), ("app_id", properties.appID),
    ]
  }

  private static func numbers(_ properties: BasicProperties) -> [(String, Int64?)] {
    [
      ("delivery_mode", properties.deliveryMode.map(Int64.init)), ("priority", properties.priority.map(Int64.init)),
      ("timestamp", properties.timestamp.map(Int64.init(clamping:))),
    ]
  }

  var text: String {
    let properties = delivery.properties
    var facts: [(String, String?)] = [
      ("message", messageID ?? "(without an id)"), ("app", app), ("error", error), ("reason", reason),
      ("status", status.map(String.init)), ("attempts", attempts.map(String.init)),
      ("given up", failedAt.map { String(decoding: Timestamp.text($0), as: UTF8.self) }), ("from", origin),
    ]
    for (name, value) in Self.texts(properties) where name != "message_id" && name != "app_id" {
      facts.append((name, value.map { String(printing: $0) }))
    }
    for (name, value) in Self.numbers(properties) { facts.append((name, value.map(String.init))) }
    for (name, value) in properties.headers.entries {
      facts.append((String(printing: name), String(printing: value.json)))
    }
    if properties.hasUnreadableHeaders { facts.append(("headers", "(some can't be read)")) }
    facts.append(("body", bodyText))
    return FactList.text(facts)
  }

  private var bodyText: String {
    guard let text = String(validating: delivery.body, as: UTF8.self) else {
      return "(\(delivery.bodySize) bytes that are no text, in base64) " + Data(delivery.body).base64EncodedString()
    }
    return text.isEmpty ? "(empty)" : text.printable
  }
}

extension FieldValue {
  /// As JSON; bytes that are no text in base64.
  var json: [UInt8] {
    switch self {
    case .bool(let value): return Array("\(value)".utf8)
    case .integer(let value): return Array("\(value)".utf8)
    case .timestamp(let value): return Array("\(value)".utf8)
    case .double(let value): return Array((value.isFinite ? "\(value)" : "null").utf8)
    case .decimal(let scale, let value): return Array("\(value)e-\(scale)".utf8)
    case .void: return Array("null".utf8)
    case .string(let bytes), .bytes(let bytes):
      let isText = String(validating: bytes, as: UTF8.self) != nil
      var text: [UInt8] = []
      text.appendSafeJSONString(isText ? bytes : Array(Data(bytes).base64EncodedString().utf8))
      return text
    case .array(let values):
      return Array("[".utf8) + Array(values.map(\.json).joined(separator: Array(",".utf8))) + Array("]".utf8)
    case .table(let table):
      var object = JSONObjectWriter()
      for (name, value) in table.entries { object.set(String(decoding: name, as: UTF8.self), raw: value.json) }
      return object.closed()
    }
  }
}
