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

    var json: JSONObject { ["kid": keyID, "iss": issuer, "iat": issuedAt] }
  }

  /// RFC 8292 §2 and §3.2.
  public struct Vapid: Sendable, Equatable {
    /// The public key in Base64.
    public var key: [UInt8]
    public var audience: [UInt8]?
    public var subject: [UInt8]?
    /// Unix seconds.
    public var expires: Int64?

    var json: JSONObject { ["k": key, "aud": audience, "sub": subject, "exp": expires] }
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

  /// The entry in the journal's file.
  var json: JSONObject {
    var names: [String] = []
    for name in headers.map({ String(decoding: $0.name, as: UTF8.self) }) where !names.contains(name) { names.append(name) }
    var members: [(String, any JSONMember)] = names.map { name in
      let values = headers.filter { $0.name.elementsEqual(name.utf8) }.map(\.value)
      return (name, values.count == 1 ? values[0] as any JSONMember : values)
    }
    if let authorization { members.append(("authorization", authorization.json)) }
    if let vapid { members.append(("authorization", vapid.json)) }
    return [
      "time": Timestamp.text(time), "connection": connection, "stream": Int(stream), "method": method, "path": path,
      "token": token, "headers": JSONObject(members), "payload": JSONRaw(isJSON ? payload : Array("null".utf8)),
      "payload_text": JSONOptional(isJSON || payload.isEmpty ? nil : payload), "payload_size": payload.count,
      "violations": JSONOptional(violations.isEmpty ? nil : violations.map { Array($0.utf8) }),
      "answer": ["status": JSONOptional(status), "reason": JSONOptional(reason), "fault": JSONOptional(fault)] as JSONObject,
    ]
  }
}
