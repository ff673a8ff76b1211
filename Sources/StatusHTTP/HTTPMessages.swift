/// A complete request. Nothing is validated: target and headers are the received bytes.
public struct HTTPRequest: Sendable {
  public var method: String
  /// Path and query as received.
  public var target: [UInt8]
  /// The headers that the server keeps, by name in lower case.
  public var headers: [String: [UInt8]] = [:]
  public var body: [UInt8] = []
  /// The connection's descriptor; -1 if there is none.
  var descriptor: Int32 = -1
}

public struct HTTPAnswer: Sendable, Equatable {
  public var status: Int
  public var contentType: String
  /// Headers besides `Content-Type`.
  public var headers: [String: String]
  public var body: [UInt8]

  public init(status: Int, contentType: String, headers: [String: String] = [:], body: [UInt8]) {
    self.status = status
    self.contentType = contentType
    self.headers = headers
    self.body = body
  }

  public init(status: Int, contentType: String, headers: [String: String] = [:], body: String) {
    self.init(status: status, contentType: contentType, headers: headers, body: Array(body.utf8))
  }

  package static func text(_ status: Int, _ text: String, headers: [String: String] = [:]) -> Self {
    Self(status: status, contentType: "text/plain; charset=UTF-8", headers: headers, body: text)
  }
}

public struct HTTPServerLimits: Sendable {
  /// Connections allowed beyond the limit, because a connection that is asked to leave closes a moment later. Beyond these,
  /// none is accepted.
  public static let passing: UInt32 = 128

  /// Connections at once. Further ones wait to be accepted.
  public var connections: UInt32
  /// Seconds without data before a connection is closed.
  public var idle: UInt32
  /// Bytes of a body.
  public var body: Int
  /// Seconds for a request's first line, and again for the rest of the request.
  public var requestSeconds: Int
  /// Memory of a connection in bytes, which limits request line and headers together.
  static let memory = 16_384

  public init(connections: UInt32, idle: UInt32, body: Int, requestSeconds: Int = 30) {
    self.connections = connections
    self.idle = idle
    self.body = body
    self.requestSeconds = requestSeconds
  }
}

/// Certificate chain and key, in PEM.
public typealias HTTPServerIdentity = (certificate: [UInt8], key: [UInt8])

public struct HTTPServerError: Error, CustomStringConvertible {
  let reason: String
  /// True if a later attempt may succeed: the port is in use, the address doesn't exist yet, or a resource is used up.
  public let isPassing: Bool
  public var description: String { reason }
}
