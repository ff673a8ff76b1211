import Wire

public struct HeaderField: Equatable, Sendable {
  public var name: [UInt8]
  public var value: [UInt8]

  public init(name: [UInt8], value: [UInt8]) {
    self.name = name
    self.value = value
  }

  public init(_ name: String, _ value: String) {
    self.init(name: Array(name.utf8), value: Array(value.utf8))
  }
}

public struct ServerRequest: Sendable {
  public var stream: Int32
  /// In order, with pseudo-headers and duplicates.
  public var headers: [HeaderField]
  /// At most `ServerConfiguration.maxRequestBody` bytes.
  public var body: [UInt8]
  /// Bytes received, whether kept or not.
  public var bodySize: Int

  /// - Parameter body: the whole body.
  public init(stream: Int32, headers: [HeaderField], body: [UInt8] = []) {
    self.stream = stream
    self.headers = headers
    self.body = body
    bodySize = body.count
  }

  public func header(_ name: String) -> [UInt8]? {
    headers.first { $0.name.elementsEqual(name.utf8) }?.value
  }
}

/// Receives a server session's events, never while nghttp2 runs.
public protocol ServerSessionHandler: AnyObject {
  func requestReceived(_ request: ServerRequest, on session: ServerSession)
  func streamClosed(_ stream: Int32, _ code: ErrorCode, on session: ServerSession)
  /// The client violated HTTP/2 or a SETTINGS limit. `what` is text for people.
  func protocolViolated(_ what: String, on session: ServerSession)
  func sessionEnded(_ reason: TransportEnd, of session: ServerSession)
}

extension ServerSessionHandler {
  public func streamClosed(_ stream: Int32, _ code: ErrorCode, on session: ServerSession) {}
  public func protocolViolated(_ what: String, on session: ServerSession) {}
  public func sessionEnded(_ reason: TransportEnd, of session: ServerSession) {}
}

/// Settings of a server session. Sizes in bytes.
public struct ServerConfiguration: Sendable {
  public var maxConcurrentStreams = 100
  public var initialWindowSize = 65_535
  public var headerTableSize = 4096
  public var maxFrameSize = 16_384
  public var maxHeaderListSize = 8000
  /// Bytes of a request's body to keep. Further bytes are counted and dropped.
  public var maxRequestBody = 64 * 1024
  /// If false, windows are never enlarged, as with a server that hangs.
  public var updatesWindows = true
  /// The GOAWAY for a client that opens more streams than the SETTINGS that it acknowledged.
  public var streamLimitGoAway: (code: ErrorCode, debugData: [UInt8]) = (.protocolError, [])

  public init() {}
}
