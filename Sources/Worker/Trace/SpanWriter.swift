import PushCore

/// A span in the JSON encoding of OTLP: ids in hexadecimal, 64-bit integers as text.
struct SpanWriter {
  enum Kind: Int { case client = 3, consumer = 5 }

  enum Value {
    case text([UInt8])
    case number(Int64)
    case flag(Bool)
  }

  private(set) var json: [UInt8] = []
  private var attributes = 0

  /// - Parameter start, end: unix nanoseconds.
  init(name: String, kind: Kind, trace: [UInt8], span: [UInt8], parent: [UInt8], start: Int64, end: Int64) {
    json.append(contentsOf: #"{"traceId":""#.utf8)
    json.append(contentsOf: trace)
    json.append(contentsOf: #"","spanId":""#.utf8)
    json.append(contentsOf: span)
    json.append(contentsOf: #"","parentSpanId":""#.utf8)
    json.append(contentsOf: parent)
    json.append(contentsOf: #"","name":"#.utf8)
    json.appendSafeJSONString(name)
    json.append(contentsOf: #","kind":"#.utf8)
    json.appendDecimal(kind.rawValue)
    json.append(contentsOf: #","startTimeUnixNano":""#.utf8)
    json.appendDecimal(start)
    json.append(contentsOf: #"","endTimeUnixNano":""#.utf8)
    json.appendDecimal(max(start, end))
    json.append(contentsOf: #"","attributes":["#.utf8)
  }

  mutating func attribute(_ key: String, _ value: Value) {
    if attributes > 0 { json.append(UInt8(ascii: ",")) }
    attributes += 1
    json.append(contentsOf: #"{"key":"#.utf8)
    json.appendSafeJSONString(key)
    json.append(contentsOf: #","value":{"#.utf8)
    switch value {
    case .text(let text):
      json.append(contentsOf: #""stringValue":"#.utf8)
      json.appendSafeJSONString(text)
    case .number(let number):
      json.append(contentsOf: #""intValue":""#.utf8)
      json.appendDecimal(number)
      json.append(UInt8(ascii: "\""))
    case .flag(let flag):
      json.append(contentsOf: #""boolValue":"#.utf8)
      json.append(contentsOf: (flag ? "true" : "false").utf8)
    }
    json.append(contentsOf: "}}".utf8)
  }

  mutating func attribute(_ key: String, _ text: String) { attribute(key, .text(Array(text.utf8))) }

  /// - Parameter error: what went wrong; nil for nothing, of which OpenTelemetry says nothing either.
  mutating func end(error: String?) {
    json.append(contentsOf: #"],"status":{"#.utf8)
    if let error {
      json.append(contentsOf: #""code":2,"message":"#.utf8)
      json.appendSafeJSONString(error)
    }
    json.append(contentsOf: "}}".utf8)
  }
}
