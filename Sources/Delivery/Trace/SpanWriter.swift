import PushCore

/// A span in OTLP's JSON encoding: ids in hexadecimal, 64-bit integers as text.
struct SpanWriter {
  enum Kind: Int64 { case client = 3, consumer = 5 }

  enum Value {
    case text([UInt8])
    case number(Int64)
  }

  private var span = JSONObjectWriter()
  private var attributes: [(inout JSONObjectWriter) -> Void] = []

  /// - Parameter start, end: unix nanoseconds.
  init(name: String, kind: Kind, trace: [UInt8], span id: [UInt8], parent: [UInt8], start: Int64, end: Int64) {
    span.set("traceId", trace)
    span.set("spanId", id)
    span.set("parentSpanId", parent)
    span.set("name", name)
    span.set("kind", kind.rawValue)
    span.set("startTimeUnixNano", "\(start)")
    span.set("endTimeUnixNano", "\(max(start, end))")
  }

  mutating func attribute(_ key: String, _ value: Value) { attributes.append(Self.attribute(key, value)) }

  mutating func attribute(_ key: String, _ text: String) { attribute(key, .text(Array(text.utf8))) }

  /// OTLP's key-value pair, with the type in the value.
  static func attribute(_ key: String, _ value: Value) -> (inout JSONObjectWriter) -> Void {
    { pair in
      pair.set("key", key)
      pair.set("value") {
        switch value {
        case .text(let text): $0.set("stringValue", text)
        case .number(let number): $0.set("intValue", "\(number)")
        }
      }
    }
  }

  /// - Parameter error: the span's error; nil leaves the status unset, as OpenTelemetry recommends.
  consuming func ended(error: String?) -> [UInt8] {
    span.set("attributes", objects: attributes.count) { attributes[$0](&$1) }
    span.set("status") {
      guard let error else { return }
      $0.set("code", 2)
      $0.set("message", error)
    }
    return span.closed()
  }
}
