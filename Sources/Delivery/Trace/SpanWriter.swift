import PushCore

/// A span in OTLP's JSON encoding: ids in hexadecimal, 64-bit integers as text.
struct SpanWriter {
  enum Kind: Int64 { case client = 3, consumer = 5 }

  enum Value {
    case text([UInt8])
    case number(Int64)
  }

  private let head: JSONObject
  private var attributes: [JSONObject] = []

  /// - Parameter start, end: unix nanoseconds.
  init(name: String, kind: Kind, trace: [UInt8], span id: [UInt8], parent: [UInt8], start: Int64, end: Int64) {
    head = [
      "traceId": trace, "spanId": id, "parentSpanId": parent, "name": name, "kind": kind.rawValue,
      "startTimeUnixNano": "\(start)", "endTimeUnixNano": "\(max(start, end))",
    ]
  }

  mutating func attribute(_ key: String, _ value: Value) { attributes.append(Self.attribute(key, value)) }

  mutating func attribute(_ key: String, _ text: String) { attribute(key, .text(Array(text.utf8))) }

  /// OTLP's key-value pair, with the type in the value.
  static func attribute(_ key: String, _ value: Value) -> JSONObject {
    let typed: JSONObject =
      switch value {
      case .text(let text): ["stringValue": text]
      case .number(let number): ["intValue": "\(number)"]
      }
    return ["key": key, "value": typed]
  }

  /// - Parameter error: the span's error; nil leaves the status unset, as OpenTelemetry recommends.
  consuming func ended(error: String?) -> [UInt8] {
    let status: JSONObject = error.map { ["code": 2, "message": $0] } ?? [:]
    return (head + ["attributes": attributes, "status": status]).line
  }
}
