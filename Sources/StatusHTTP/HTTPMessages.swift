/// A request, whole. Nothing of it is trusted: the target and the headers are bytes as they came.
public struct HTTPRequest: Sendable {
  public var method: String
  /// Path and query, as they came.
  public var target: [UInt8]
  /// Those that the server keeps, by their names in lower case.
  public var headers: [String: [UInt8]]
  public var body: [UInt8]

  public init(method: String, target: [UInt8], headers: [String: [UInt8]] = [:], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }
}

/// What a request is answered with.
public struct HTTPAnswer: Sendable, Equatable {
  public var status: Int
  public var contentType: String
  /// Besides `Content-Type`, with their values.
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
}

/// What a server bears.
public struct HTTPServerLimits: Sendable {
  /// Connections beyond the limit, as one that is asked to leave is gone a moment later. Nobody is accepted beyond these.
  public static let passing: UInt32 = 128

  /// Connections at once; further ones wait to be accepted.
  public var connections: UInt32
  /// Seconds that a connection may be silent.
  public var idle: UInt32
  /// Bytes of a body.
  public var body: Int
  /// Seconds that a connection may take for a request's first line, and again for the rest of it.
  public var requestSeconds: Int
  /// Bytes of a connection's memory: the most that request line and headers may take together.
  public var memory: Int

  public init(connections: UInt32, idle: UInt32, body: Int, requestSeconds: Int = 30, memory: Int = 16_384) {
    self.connections = connections
    self.idle = idle
    self.body = body
    self.requestSeconds = requestSeconds
    self.memory = memory
  }
}

/// Certificate chain and key, both PEM.
public struct HTTPServerIdentity: Sendable {
  var certificate: [UInt8]
  var key: [UInt8]

  public init(certificate: [UInt8], key: [UInt8]) {
    self.certificate = certificate
    self.key = key
  }
}

/// Why nothing can be served.
public struct HTTPServerError: Error, CustomStringConvertible {
  let reason: String
  /// Trying again later may help: the port is in use, the address isn't there yet, something has run out.
  public let isPassing: Bool
  public var description: String { reason }
}
