import AMQP
import Foundation
import PushCore

extension Letter {
  /// Without properties, headers and body.
  var summary: JSONObject {
    [
      "message_id": delivery.properties.messageID, "app": delivery.properties.appID, "error": error, "reason": reason,
      "status": status, "attempts": attempts, "failed_at": failedAt.map(Timestamp.text), "origin": origin,
      "exchange": delivery.exchange, "routing_key": delivery.routingKey,
    ]
  }

  var json: JSONObject {
    let properties = delivery.properties
    let isText = String(validating: delivery.body, as: UTF8.self) != nil
    return summary + [
      "properties": JSONObject(Self.fields(properties).map { ($0.name, $0.value) }),
      "headers": Self.json(properties.headers),
      "unreadable_headers": JSONOptional(properties.hasUnreadableHeaders ? true : nil),
      "body_size": Int64(clamping: delivery.bodySize), "body": JSONOptional(isText ? delivery.body : nil),
      "body_base64": JSONOptional(isText ? nil : Data(delivery.body).base64EncodedString()),
    ]
  }

  private static func json(_ headers: FieldTable) -> JSONObject {
    var seen: Set<[UInt8]> = []
    let firsts = headers.entries.filter { seen.insert($0.key).inserted }
    return JSONObject(firsts.map { (String(decoding: $0.key, as: UTF8.self), JSONRaw($0.value.json)) })
  }

  private static func fields(_ properties: BasicProperties) -> [(name: String, value: any JSONMember, text: String?)] {
    let texts: [(String, [UInt8]?)] = [
      ("content_type", properties.contentType), ("content_encoding", properties.contentEncoding),
      ("correlation_id", properties.correlationID), ("reply_to", properties.replyTo),
      ("expiration", properties.expiration), ("message_id", properties.messageID), ("type", properties.type),
      ("user_id", properties.userID), ("app_id", properties.appID),
    ]
    let numbers: [(String, Int64?)] = [
      ("delivery_mode", properties.deliveryMode.map(Int64.init)), ("priority", properties.priority.map(Int64.init)),
      ("timestamp", properties.timestamp.map(Int64.init(clamping:))),
    ]
    return texts.map { ($0, JSONOptional($1), $1.map { String(printing: $0) }) }
      + numbers.map { ($0, JSONOptional($1), $1.map(String.init)) }
  }

  var text: String {
    let properties = delivery.properties
    var facts: [(String, String?)] = [
      ("message", messageID ?? "(without an id)"), ("app", app), ("error", error), ("reason", reason),
      ("status", status.map(String.init)), ("attempts", attempts.map(String.init)),
      ("given up", failedAt.map { Figures.moment($0) }), ("from", origin),
    ]
    facts += Self.fields(properties).filter { !["message_id", "app_id"].contains($0.name) }.map { ($0.name, $0.text) }
    facts += properties.headers.entries.map { (String(printing: $0.key), String(printing: $0.value.json)) }
    if properties.hasUnreadableHeaders { facts.append(("headers", "(some can't be read)")) }
    facts.append(("body", bodyText))
    return FactList.text(facts)
  }

  private var bodyText: String {
    guard let text = String(validating: delivery.body, as: UTF8.self) else {
      return "(\(delivery.bodySize) bytes that are not text, in base64) " + Data(delivery.body).base64EncodedString()
    }
    return text.isEmpty ? "(empty)" : text.printable
  }
}

extension FieldValue {
  /// As JSON; bytes that aren't UTF-8 as base64.
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
      return JSONObject(table.entries.map { (String(decoding: $0.key, as: UTF8.self), JSONRaw($0.value.json)) }).line
    }
  }
}
