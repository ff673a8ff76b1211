import Wire

/// One header field as it came.
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

/// A request received whole.
public struct ServerRequest: Sendable {
  public var stream: Int32
  /// In order, pseudo-headers included, duplicates kept.
  public var headers: [HeaderField]
  /// At most `ServerConfiguration.maxRequestBody` bytes.
  public var body: [UInt8]
  /// Bytes that came, kept or not.
  public var bodySize: Int

  /// The first value of a header.
  public func header(_ name: String) -> [UInt8]? {
    headers.first { $0.name.elementsEqual(name.utf8) }?.value
  }
}

/// What a server session tells its owner, never from inside the protocol library.
public protocol ServerSessionHandler: AnyObject {
  func sessionOpened(_ session: ServerSession)
  func requestReceived(_ request: ServerRequest, on session: ServerSession)
  /// The stream has ended, answered or not.
  func streamClosed(_ stream: Int32, _ code: ErrorCode, on session: ServerSession)
  /// The client broke HTTP/2, a SETTINGS limit included; `what` is for people.
  func protocolViolated(_ what: String, on session: ServerSession)
  func sessionEnded(_ reason: TransportEnd, of session: ServerSession)
}

extension ServerSessionHandler {
  public func sessionOpened(_ session: ServerSession) {}
  public func streamClosed(_ stream: Int32, _ code: ErrorCode, on session: ServerSession) {}
  public func protocolViolated(_ what: String, on session: ServerSession) {}
  public func sessionEnded(_ reason: TransportEnd, of session: ServerSession) {}
}

/// How a server session presents itself. Sizes in bytes.
public struct ServerConfiguration: Sendable {
  public var maxConcurrentStreams = 100
  public var initialWindowSize = 65_535
  public var headerTableSize = 4096
  public var maxFrameSize = 16_384
  public var maxHeaderListSize = 8000
  /// Of a request's body; what follows is counted and forgotten.
  public var maxRequestBody = 64 * 1024
  /// False: the windows shrink and are never widened again, as a server that has hung.
  public var updatesWindows = true
  /// What a client gets that opens more streams than SETTINGS it has acknowledged allow.
  public var streamLimitGoAway: (code: ErrorCode, debugData: [UInt8]) = (.protocolError, [])

  public init() {}
}
