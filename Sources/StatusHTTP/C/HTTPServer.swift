import CMicroHTTPD
import Glibc
import Synchronization

/// An HTTP/1.1 server with a thread of the library, or driven by its owner. The handler gets complete requests. It may answer
/// at once or later, from any thread.
public final class HTTPServer: @unchecked Sendable {
  // The library calls back on its thread. Data shared with it is Sendable or under a lock.

  /// Called on the serving thread; must not block. Each request must be answered eventually.
  public typealias Handler = @Sendable (HTTPRequest, HTTPReply) -> Void
  /// Called on the serving thread for a request that was refused without the handler, with the status of the answer.
  public typealias Refused = @Sendable (_ status: Int) -> Void
  /// Called on the serving thread for a request whose body is large or of unknown length. Returns true if the handler may want
  /// the body. If false, the handler gets an empty body.
  public typealias Keeps = @Sendable (_ headers: [String: [UInt8]]) -> Bool

  private struct Open {
    /// Requests that the handler has.
    var replies: [ObjectIdentifier: HTTPReply] = [:]
    /// The last one accepts connections; earlier ones serve their remaining connections.
    var daemons: [HTTPDaemon] = []
    var isStopping = false
    /// Bytes of incomplete bodies.
    var unfinished = 0
    /// Requests with large incomplete bodies and their connections, in the order of beginning.
    var large: [(reply: HTTPReply, descriptor: Int32)] = []
    /// Bytes of bodies whose connections have been shut down.
    var ending = 0

    /// Counts bytes of a body. When full, shuts down the oldest large upload: a normal client finishes sooner.
    /// - Returns: true if there is room.
    mutating func add(_ count: Int, of reply: HTTPReply, _ descriptor: Int32) -> Bool {
      if reply.isShutDown { return false }
      let wasSmall = reply.unfinished <= HTTPServer.smallBody
      unfinished += count
      reply.unfinished += count
      if wasSmall, reply.unfinished > HTTPServer.smallBody { large.append((reply, descriptor)) }
      while unfinished - ending > HTTPServer.mostUnfinished {
        guard let oldest = large.first(where: { !$0.reply.isShutDown }), oldest.reply !== reply else { return false }
        shutdown(oldest.descriptor, Int32(SHUT_RDWR))
        oldest.reply.isShutDown = true
        ending += oldest.reply.unfinished
      }
      return true
    }

    mutating func forget(_ reply: HTTPReply) {
      unfinished -= reply.unfinished
      if reply.isShutDown { ending -= reply.unfinished }
      reply.unfinished = 0
      large.removeAll { $0.reply === reply }
    }
  }

  /// Most bytes of incomplete bodies together. Their senders are not authenticated yet.
  private static let mostUnfinished = 64 << 20
  /// Bytes of a body that is never aborted for others.
  private static let smallBody = 8 << 10

  private let limits: HTTPServerLimits
  private let (kept, single): ([String], [String])
  private let isDriven: Bool
  private let handler: Handler
  private let refused: Refused
  private let keeps: Keeps
  private let open = Mutex(Open())
  private let answered = Atomic(false)

  /// - Parameters:
  ///   - host: an address, or a name. The first address of a name is used.
  ///   - headers: the header names that the handler needs, in lower case.
  ///   - single: the names of headers that make a request ambiguous if they come twice.
  ///   - identity: for TLS; nil for plain HTTP.
  ///   - isDriven: uses no thread. The owner calls `turn` once a second, when `descriptor` is readable, and when `hasAnswers`
  ///     is true. Don't use it with TLS, whose handshakes would block the owner's thread.
  public init(
    host: String, port: UInt16, limits: HTTPServerLimits, headers: [String] = [], single: [String] = [],
    identity: HTTPServerIdentity? = nil, isDriven: Bool = false, refused: @escaping Refused = { _ in },
    keeps: @escaping Keeps = { _ in true }, handler: @escaping Handler
  ) throws(HTTPServerError) {
    self.limits = limits
    self.isDriven = isDriven
    (kept, self.single) = (headers, single)
    self.handler = handler
    self.refused = refused
    self.keeps = keeps
    let daemon = try HTTPDaemon(self, try ListeningSocket.open(host, port), limits, identity, isDriven: isDriven)
    open.withLock { $0.daemons = [daemon] }
  }

  deinit { stop() }

  /// For a driven server: readable if there is work.
  public var descriptor: Int32 { open.withLock { $0.daemons.last?.pollDescriptor ?? -1 } }

  /// True if answers wait for a turn.
  public internal(set) var hasAnswers: Bool {
    get { answered.load(ordering: .acquiring) }
    set { answered.store(newValue, ordering: .releasing) }
  }

  /// Does the work that is ready, without waiting. Returns true if more work is ready.
  public func turn() -> Bool {
    hasAnswers = false
    return open.withLock(\.daemons.last)?.turn() ?? false
  }

  /// Closes connections whose request takes too long to arrive, even if data arrives steadily. Called about once a second.
  public func endSlow() {
    for daemon in open.withLock(\.daemons) { daemon.endSlow() }
  }

  /// Uses another certificate for new connections. Existing connections keep theirs and close with their next answer.
  /// - Throws: if the certificate can't be used; the old one stays.
  public func renew(_ identity: HTTPServerIdentity) throws(HTTPServerError) {
    guard let old = open.withLock({ open in open.daemons.last.flatMap { $0.isRetired ? nil : $0 } }) else { return }
    let descriptor = old.duplicateListener()
    guard descriptor >= 0 else { throw HTTPServerError(reason: "no file descriptor is available", isPassing: true) }
    let fresh = try HTTPDaemon(self, descriptor, limits, identity, isDriven: isDriven)
    open.withLock { open in
      old.isRetired = true
      open.daemons.append(fresh)
    }
    old.stopListening()
  }

  /// Releases daemons with an earlier certificate and no connection.
  /// - Returns: true if none of them is left.
  public func endRetired() -> Bool {
    let daemons = open.withLock(\.daemons)
    let over = daemons.dropLast().filter { $0.count == 0 }
    for daemon in over { daemon.stop() }
    return open.withLock { open in
      open.daemons.removeAll { daemon in over.contains { $0 === daemon } }
      return open.daemons.count <= 1
    }
  }

  /// Accepts no more connections. Existing ones go on.
  public func quiesce() {
    let last = open.withLock { open in
      open.daemons.last?.isRetired = true
      return open.daemons.last
    }
    last?.stopListening()
  }

  /// Number of requests that wait for their answer.
  public var waiting: Int { open.withLock { $0.replies.count } }

  /// Answers open requests with 503 and closes every connection.
  public func stop() {
    let (replies, daemons) = open.withLock { open in
      open.isStopping = true
      return (Array(open.replies.values), open.daemons)
    }
    for reply in replies { reply.send(Self.stopping) }
    // The library must resume all suspended connections before it may be stopped.
    for _ in 0..<Self.stopRounds where waiting > 0 {
      if isDriven { _ = turn() } else { usleep(Self.stopPause) }
    }
    for daemon in daemons { daemon.stop() }
    open.withLock { $0.daemons = [] }
  }

  private static let stopRounds = 400
  /// Microseconds.
  private static let stopPause: UInt32 = 5_000
  static let stopping = HTTPAnswer.text(503, "the server is stopping\n", headers: ["Retry-After": "1", "Connection": "close"])
  private static let crowded = HTTPAnswer.text(
    503, "too many request bodies are being received\n", headers: ["Retry-After": "5", "Connection": "close"])
  private static let ambiguous = HTTPAnswer.text(
    400, "the headers can be read in more than one way\n", headers: ["Connection": "close"])
  private static let otherVersion = HTTPAnswer.text(
    505, "only HTTP/1.1 and HTTP/1.0 are supported\n", headers: ["Connection": "close"])
  private static let tooLong = HTTPAnswer.text(413, "the body is too large\n", headers: ["Connection": "close"])

  // MARK: On the thread that serves

  func go(_ reply: HTTPReply, _ connection: OpaquePointer, _ line: RequestLine, _ daemon: HTTPDaemon) -> MHD_Result {
    switch reply.step {
    case .headers:
      reply.isChunked = pushfleet_mhd_header(connection, "transfer-encoding") != nil
      guard line.isKnown else { return refuse(Self.otherVersion, reply, connection, daemon) }
      if RequestHeaders.areAmbiguous(connection, line, target: reply.request.target)
        || single.contains(where: { pushfleet_mhd_count(connection, $0) > 1 })
      {
        return refuse(Self.ambiguous, reply, connection, daemon)
      }
      reply.request.method = String(cString: line.method)
      reply.request.descriptor = pushfleet_mhd_descriptor(connection)
      let length = announced(reply, connection)
      if length > limits.body, length != .max {
        // Read the body to its end and discard it. An earlier answer would be lost if the rest arrived at a closed connection.
        guard length <= Self.mostRead * limits.body, pushfleet_mhd_header(connection, "expect") == nil else {
          return refuse(Self.tooLong, reply, connection, daemon)
        }
        reply.refusal = Self.tooLong
      }
      reply.request.headers.reserveCapacity(kept.count)
      for name in kept { if let value = header(name, connection) { reply.request.headers[name] = value } }
      if length > Self.smallBody { reply.isUnkept = !keeps(reply.request.headers) }
      reply.step = .body
      return pushfleet_mhd_go_on()
    case .body:
      if let refusal = reply.refusal { return refuse(refusal, reply, connection, daemon) }
      forgetUnfinished(reply)
      reply.step = .answering
      let isStopping = open.withLock { open in
        if !open.isStopping { open.replies[ObjectIdentifier(reply)] = reply }
        return open.isStopping
      }
      if isStopping { return refuse(Self.stopping, reply, connection, daemon) }
      let request = reply.request
      reply.request = HTTPRequest(method: "", target: [])
      handler(request, reply)
      if let answer = reply.answer { return queue(answer, reply, connection, daemon) }
      reply.await(connection, of: self)
      return pushfleet_mhd_go_on()
    case .answering:
      guard let answer = reply.answer else { return pushfleet_mhd_go_on() }
      return queue(answer, reply, connection, daemon)
    case .over: return pushfleet_mhd_go_on()
    }
  }

  /// The body's size according to the headers; `Int.max` if it is chunked.
  private func announced(_ reply: HTTPReply, _ connection: OpaquePointer) -> Int {
    guard let length = pushfleet_mhd_header(connection, "content-length") else { return reply.isChunked ? .max : 0 }
    return min(Int(String(cString: length)) ?? .max, .max - 1)
  }

  /// Bodies of up to this many times the limit are read to their end.
  private static let mostRead = 4

  /// - Returns: refuses a body that is far too long, which closes the connection.
  func take(_ bytes: UnsafeRawBufferPointer, _ reply: HTTPReply, _ connection: OpaquePointer) -> MHD_Result {
    reply.received += bytes.count
    if reply.received > limits.body { reply.refusal = Self.tooLong }
    if reply.refusal == nil, !reply.isUnkept {
      let descriptor = pushfleet_mhd_descriptor(connection)
      if !open.withLock({ $0.add(bytes.count, of: reply, descriptor) }) { reply.refusal = Self.crowded }
    }
    if reply.refusal != nil || reply.isUnkept {
      forgetUnfinished(reply)
      reply.request.body = []
    } else {
      reply.request.body.append(contentsOf: bytes)
    }
    return reply.received > Self.mostRead * limits.body ? pushfleet_mhd_refuse() : pushfleet_mhd_go_on()
  }

  func completed(_ reply: HTTPReply) {
    reply.end()
    forgetUnfinished(reply)
    open.withLock { $0.replies[ObjectIdentifier(reply)] = nil }
  }

  private func forgetUnfinished(_ reply: HTTPReply) {
    guard reply.unfinished > 0 else { return }
    open.withLock { $0.forget(reply) }
  }

  /// The last value, without trailing white space (RFC 9110, section 5.5).
  private func header(_ name: String, _ connection: OpaquePointer) -> [UInt8]? {
    guard let value = name.withCString({ pushfleet_mhd_header(connection, $0) }) else { return nil }
    let bytes = UnsafeRawBufferPointer(start: value, count: strlen(value))
    return bytes.lastIndex { $0 != 0x20 && $0 != 0x09 }.map { Array(bytes[...$0]) } ?? []
  }

  private func refuse(
    _ answer: HTTPAnswer, _ reply: HTTPReply, _ connection: OpaquePointer, _ daemon: HTTPDaemon
  ) -> MHD_Result {
    refused(answer.status)
    return queue(answer, reply, connection, daemon)
  }

  private func queue(
    _ answer: HTTPAnswer, _ reply: HTTPReply, _ connection: OpaquePointer, _ daemon: HTTPDaemon
  ) -> MHD_Result {
    reply.step = .over
    let response = answer.body.withUnsafeBytes { pushfleet_mhd_response($0.baseAddress, $0.count) }
    guard let response else { return pushfleet_mhd_refuse() }
    defer { MHD_destroy_response(response) }
    // Without `withCString`, a string that isn't a literal is copied to an array first.
    _ = answer.contentType.withCString { MHD_add_response_header(response, "Content-Type", $0) }
    // The library parses chunks leniently. A proxy may see another end of the body, so nothing may follow it as a request.
    if reply.isChunked || open.withLock({ _ in daemon.isRetired }) { MHD_add_response_header(response, "Connection", "close") }
    for (name, value) in answer.headers {
      _ = name.withCString { name in value.withCString { MHD_add_response_header(response, name, $0) } }
    }
    return MHD_queue_response(connection, UInt32(answer.status), response)
  }
}
