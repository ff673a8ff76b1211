import HTTP2
import PushCore

/// One request as a simulator saw it, and what it answered.
public struct JournalEntry: Sendable {
  /// Unix milliseconds when the request was whole.
  public var time: Int64
  /// Counted from 1 in order of connecting.
  public var connection: Int
  public var stream: Int32
  public var method: [UInt8]
  public var path: [UInt8]
  /// The device token, or what stands in its place; empty where the request has none.
  public var token: [UInt8] = []
  /// In order, without pseudo-headers and `authorization`.
  public var headers: [HeaderField] = []
  /// What the `authorization` header says of itself; never the token.
  public var authorization: Authorization?
  public var payload: [UInt8] = []
  /// The payload is one strict JSON text.
  public var isJSON = false
  /// What a client of the real service must not do, even where that would not be noticed there.
  public var violations: [String] = []
  /// The status answered; nil when a fault stood in for the answer.
  public var status: Int?
  public var reason: String?
  /// The scripted fault: `stall`, `refuse`, …
  public var fault: String?

  public struct Authorization: Sendable, Equatable {
    public var keyID: [UInt8]
    public var issuer: [UInt8]
    public var issuedAt: Int64
  }

  public func header(_ name: String) -> String? {
    headers.first { $0.name.elementsEqual(name.utf8) }.map { String(decoding: $0.value, as: UTF8.self) }
  }

  public var tokenText: String { String(decoding: token, as: UTF8.self) }
}

extension JournalEntry {
  /// Appends the entry as one line of NDJSON.
  func append(to line: inout [UInt8]) {
    var json = JSONObjectWriter(after: line)
    json.set("time", Timestamp.text(time))
    json.set("connection", Int64(connection))
    json.set("stream", Int64(stream))
    json.set("method", method)
    json.set("path", path)
    json.set("token", token)
    json.set("headers") { json in
      var names: [[UInt8]] = []
      for header in headers where !names.contains(header.name) {
        names.append(header.name)
        let values = headers.filter { $0.name == header.name }.map(\.value)
        if values.count == 1 { json.set(header.name, values[0]) } else { json.set(header.name, values) }
      }
      if let authorization {
        json.set("authorization") { json in
          json.set("kid", authorization.keyID)
          json.set("iss", authorization.issuer)
          json.set("iat", authorization.issuedAt)
        }
      }
    }
    json.set("payload", raw: isJSON ? payload : Array("null".utf8))
    if !isJSON, !payload.isEmpty { json.set("payload_text", payload) }
    json.set("payload_size", Int64(payload.count))
    if !violations.isEmpty { json.set("violations", violations.map { Array($0.utf8) }) }
    json.set("answer") { json in
      if let status { json.set("status", Int64(status)) }
      if let reason { json.set("reason", Array(reason.utf8)) }
      if let fault { json.set("fault", Array(fault.utf8)) }
    }
    line = json.closed() + [UInt8(ascii: "\n")]
  }
}
