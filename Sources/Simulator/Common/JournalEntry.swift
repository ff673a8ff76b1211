import HTTP2
import PushCore

public struct JournalEntry: Sendable {
  /// Unix milliseconds of the request's end.
  public var time: Int64
  /// Number of the connection, counted from 1.
  public var connection: Int
  public var stream: Int32
  public var method: [UInt8]
  public var path: [UInt8]
  /// The device token or other target; empty if the request has none. Web push: the subscription's id.
  public var token: [UInt8] = []
  public var headers: [HeaderField] = []
  /// The claims of the `authorization` header, without the token itself.
  public var authorization: Authorization?
  /// The claims of a web push's token.
  public var vapid: Vapid?
  /// Web push: decrypted; empty if that fails.
  public var payload: [UInt8] = []
  /// True if the payload is one strict JSON text.
  public var isJSON = false
  /// Violations of the provider's rules, including those that the real service doesn't notice.
  public var violations: [String] = []
  /// The status of the answer; nil if a fault replaced the answer.
  public var status: Int?
  public var reason: String?
  /// The scripted fault: `stall`, `refuse`, …
  public var fault: String?

  public struct Authorization: Sendable, Equatable {
    public var keyID: [UInt8]
    public var issuer: [UInt8]
    public var issuedAt: Int64
  }

  /// RFC 8292 §2 and §3.2.
  public struct Vapid: Sendable, Equatable {
    /// The public key in Base64.
    public var key: [UInt8]
    public var audience: [UInt8]?
    public var subject: [UInt8]?
    /// Unix seconds.
    public var expires: Int64?
  }

  init(_ request: ServerRequest, connection: Int, at time: Int64) {
    self.time = time
    self.connection = connection
    stream = request.stream
    method = request.header(":method") ?? []
    path = request.header(":path") ?? []
    headers = request.headers.filter { $0.name.first != UInt8(ascii: ":") && !$0.name.elementsEqual("authorization".utf8) }
  }

  public func header(_ name: String) -> String? {
    headers.first { $0.name.elementsEqual(name.utf8) }.map { String(decoding: $0.value, as: UTF8.self) }
  }

  public var tokenText: String { String(decoding: token, as: UTF8.self) }

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
      var names: [String] = []
      for name in headers.map({ String(decoding: $0.name, as: UTF8.self) }) where !names.contains(name) {
        names.append(name)
        let values = headers.filter { $0.name.elementsEqual(name.utf8) }.map(\.value)
        if values.count == 1 { json.set(name, values[0]) } else { json.set(name, values) }
      }
      if let authorization {
        json.set("authorization") { json in
          json.set("kid", authorization.keyID)
          json.set("iss", authorization.issuer)
          json.set("iat", authorization.issuedAt)
        }
      }
      if let vapid {
        json.set("authorization") { json in
          json.set("k", vapid.key)
          json.set("aud", vapid.audience)
          json.set("sub", vapid.subject)
          json.set("exp", vapid.expires)
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
