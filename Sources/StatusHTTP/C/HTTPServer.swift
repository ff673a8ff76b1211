import CMicroHTTPD
import Glibc
import Synchronization

/// An HTTP/1.1 server, on a thread of the library's own or driven by whoever made it. A request is handed over whole; its answer may come at
/// once or later, from any thread.
public final class HTTPServer: @unchecked Sendable {
  // The library calls back on its own thread; what is shared with it is Sendable or under a lock.

  /// Called on the thread that serves: must not wait. Every request is to be answered sooner or later.
  public typealias Handler = @Sendable (HTTPRequest, HTTPReply) -> Void
  /// Called on the thread that serves, of a request that the handler doesn't get: with the status that it was answered with.
  public typealias Refused = @Sendable (_ status: Int) -> Void
  /// Called on the thread that serves, of a request with a large body or one of unknown length: whether the handler may want the body, by the
  /// headers that it wants to know. It gets an empty one otherwise.
  public typealias Keeps = @Sendable (_ headers: [String: [UInt8]]) -> Bool

  /// A large body that isn't whole yet.
  private struct Unfinished {
    var descriptor: Int32
    var bytes = 0
    /// Which of them it is, in the order of their beginning.
    var number: Int
    /// Its connection has been ended, and the library doesn't know yet.
    var isEnded = false
  }

  private struct Open {
    /// Requests that are with the handler.
    var replies: [ObjectIdentifier: HTTPReply] = [:]
    /// The last of them accepts; those before it serve out their connections.
    var daemons: [HTTPDaemon] = []
    var isStopping = false
    /// Bytes of bodies that aren't whole yet.
    var unfinished = 0
    /// The large ones among them.
    var large: [ObjectIdentifier: Unfinished] = [:]
    var begun = 0
    /// Bytes of those whose connections have been ended.
    var ending = 0

    /// Takes bytes of a body. Where there is no room for them, the oldest of the large ones is ended: who sends what is whole soon is younger.
    /// - Returns: there is room.
    mutating func add(_ count: Int, of reply: HTTPReply, _ descriptor: Int32) -> Bool {
      let id = ObjectIdentifier(reply)
      if large[id]?.isEnded == true { return false }
      unfinished += count
      reply.unfinished += count
      if reply.unfinished > HTTPServer.smallBody {
        if large[id] == nil {
          begun += 1
          large[id] = Unfinished(descriptor: descriptor, number: begun)
        }
        large[id]?.bytes = reply.unfinished
      }
      while unfinished - ending > HTTPServer.mostUnfinished {
        let oldest = large.lazy.filter { !$0.value.isEnded }.min { $0.value.number < $1.value.number }
        guard let (oldestID, oldest) = oldest, oldestID != id else { return false }
        shutdown(oldest.descriptor, Int32(SHUT_RDWR))
        large[oldestID]?.isEnded = true
        ending += oldest.bytes
      }
      return true
    }

    mutating func forget(_ reply: HTTPReply) {
      unfinished -= reply.unfinished
      reply.unfinished = 0
      if let body = large.removeValue(forKey: ObjectIdentifier(reply)), body.isEnded { ending -= body.bytes }
    }
  }

  /// What bodies that aren't whole yet may take together: whoever sends them hasn't been looked at.
  private static let mostUnfinished = 64 << 20
  /// Bytes of a body that is never ended for others.
  private static let smallBody = 8 << 10

  private let limits: HTTPServerLimits
  private let kept: [String]
  private let isDriven: Bool
  private let handler: Handler
  private let refused: Refused
  private let keeps: Keeps
  private let open = Mutex(Open())
  private let answered = Atomic(false)

  /// - Parameters:
  ///   - host: an address, or a name whose first address is taken.
  ///   - headers: what the handler wants to know, in lower case.
  ///   - identity: for TLS; nil for plain HTTP.
  ///   - isDriven: without a thread of its own: `turn` is called once a second, whenever `descriptor` is readable, and when it `hasAnswers`. Handshakes of TLS would hold
  ///     up whatever else its thread does.
  public init(
    host: String, port: UInt16, limits: HTTPServerLimits, headers: [String] = [], identity: HTTPServerIdentity? = nil,
    isDriven: Bool = false, refused: @escaping Refused = { _ in }, keeps: @escaping Keeps = { _ in true },
    handler: @escaping Handler
  ) throws(HTTPServerError) {
    self.limits = limits
    self.isDriven = isDriven
    kept = headers
    self.handler = handler
    self.refused = refused
    self.keeps = keeps
    let daemon = try HTTPDaemon(self, try ListeningSocket.open(host, port), limits, identity, isDriven: isDriven)
    open.withLock { $0.daemons = [daemon] }
  }

  deinit { stop() }

  /// Readable when there is something to do for a server that is driven.
  public var descriptor: Int32 { open.withLock { $0.daemons.last?.pollDescriptor ?? -1 } }

  /// Answers were given that wait for a turn.
  public internal(set) var hasAnswers: Bool {
    get { answered.load(ordering: .acquiring) }
    set { answered.store(newValue, ordering: .releasing) }
  }

  /// Does what there is to do, and doesn't wait. True when more is to be done at once.
  public func turn() -> Bool {
    hasAnswers = false
    return open.withLock(\.daemons.last)?.turn() ?? false
  }

  /// Ends connections on which a request takes too long to come, however steadily. To be called about once a second.
  public func endSlow() {
    for daemon in open.withLock(\.daemons) { daemon.endSlow() }
  }

  /// Shows another certificate to whoever connects from now on. Connections that are there go on with the one they have seen, each until its
  /// next answer.
  /// - Throws: where it can't be used; then the old one stays.
  public func renew(_ identity: HTTPServerIdentity) throws(HTTPServerError) {
    guard let old = open.withLock({ open in open.daemons.last.flatMap { $0.isRetired ? nil : $0 } }) else { return }
    let descriptor = old.duplicateListener()
    guard descriptor >= 0 else { throw HTTPServerError(reason: "no descriptor is to be had", isPassing: true) }
    let fresh = try HTTPDaemon(self, descriptor, limits, identity, isDriven: isDriven)
    open.withLock { open in
      old.isRetired = true
      open.daemons.append(fresh)
    }
    old.stopListening()
  }

  /// Lets go of what served an earlier certificate and has no connection any more.
  /// - Returns: nothing of the kind is left.
  public func endRetired() -> Bool {
    let daemons = open.withLock(\.daemons)
    let over = daemons.dropLast().filter { $0.count == 0 }
    for daemon in over { daemon.stop() }
    return open.withLock { open in
      open.daemons.removeAll { daemon in over.contains { $0 === daemon } }
      return open.daemons.count <= 1
    }
  }

  /// Takes no further connections; those that are there go on.
  public func quiesce() {
    let last = open.withLock { open in
      open.daemons.last?.isRetired = true
      return open.daemons.last
    }
    last?.stopListening()
  }

  /// Requests whose answers are awaited.
  public var waiting: Int { open.withLock { $0.replies.count } }

  /// Answers what is open with 503 and ends every connection.
  public func stop() {
    let (replies, daemons) = open.withLock { open in
      open.isStopping = true
      return (Array(open.replies.values), open.daemons)
    }
    for reply in replies { reply.send(Self.stopping) }
    // What the library has laid aside it must have taken up again before it may be stopped.
    for _ in 0..<Self.stopRounds where waiting > 0 {
      if isDriven { _ = turn() } else { usleep(Self.stopPause) }
    }
    for daemon in daemons { daemon.stop() }
    open.withLock { $0.daemons = [] }
  }

  private static let stopRounds = 400
  /// Microseconds.
  private static let stopPause: UInt32 = 5_000
  private static let stopping = HTTPAnswer(
    status: 503, contentType: "text/plain; charset=UTF-8", headers: ["Retry-After": "1", "Connection": "close"],
    body: "the server is stopping\n")
  private static let crowded = HTTPAnswer(
    status: 503, contentType: "text/plain; charset=UTF-8", headers: ["Retry-After": "5", "Connection": "close"],
    body: "too many bodies are on their way\n")
  private static let ambiguous = HTTPAnswer(
    status: 400, contentType: "text/plain; charset=UTF-8", headers: ["Connection": "close"],
    body: "the headers can be read in more than one way\n")
  private static let otherVersion = HTTPAnswer(
    status: 505, contentType: "text/plain; charset=UTF-8", headers: ["Connection": "close"],
    body: "HTTP/1.1 and HTTP/1.0 are spoken here\n")
  private static let tooLong = HTTPAnswer(
    status: 413, contentType: "text/plain; charset=UTF-8", headers: ["Connection": "close"],
    body: "the body is too large\n")

  // MARK: On the thread that serves

  func go(_ reply: HTTPReply, _ connection: OpaquePointer, _ line: RequestLine, _ daemon: HTTPDaemon) -> MHD_Result {
    switch reply.step {
    case .headers:
      reply.isChunked = pushfleet_mhd_header(connection, "transfer-encoding") != nil
      guard line.isKnown else { return refuse(Self.otherVersion, reply, connection, daemon) }
      if RequestHeaders.areAmbiguous(connection, line, target: reply.request.target) {
        return refuse(Self.ambiguous, reply, connection, daemon)
      }
      reply.request.method = String(cString: line.method)
      let length = announced(reply, connection)
      if length > limits.body, length != .max {
        // Read to its end and thrown away: an answer before it gets lost where the rest of the body meets a closed connection.
        guard length <= Self.mostRead * limits.body, pushfleet_mhd_header(connection, "expect") == nil else {
          return refuse(Self.tooLong, reply, connection, daemon)
        }
        reply.isTooLong = true
      }
      reply.request.headers.reserveCapacity(kept.count)
      for name in kept { if let value = header(name, connection) { reply.request.headers[name] = value } }
      if length > Self.smallBody { reply.isUnkept = !keeps(reply.request.headers) }
      reply.step = .body
      return pushfleet_mhd_go_on()
    case .body:
      if reply.isTooLong { return refuse(Self.tooLong, reply, connection, daemon) }
      if reply.isCrowdedOut { return refuse(Self.crowded, reply, connection, daemon) }
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

  /// Bytes of the body by its headers; the greatest number where they don't say.
  private func announced(_ reply: HTTPReply, _ connection: OpaquePointer) -> Int {
    if let length = pushfleet_mhd_header(connection, "content-length") { return Int(String(cString: length)) ?? .max }
    return reply.isChunked ? .max : 0
  }

  /// Bodies of so many times the limit are read to their end.
  private static let mostRead = 4

  /// - Returns: no for a body that goes on beyond all bounds: the connection is closed.
  func take(_ bytes: UnsafeRawBufferPointer, _ reply: HTTPReply, _ connection: OpaquePointer) -> MHD_Result {
    reply.received += bytes.count
    if reply.received > limits.body { reply.isTooLong = true }
    if !reply.isTooLong, !reply.isUnkept, !reply.isCrowdedOut {
      let descriptor = pushfleet_mhd_descriptor(connection)
      reply.isCrowdedOut = open.withLock { !$0.add(bytes.count, of: reply, descriptor) }
    }
    if reply.isTooLong || reply.isUnkept || reply.isCrowdedOut {
      forgetUnfinished(reply)
      reply.request.body = []
    } else {
      reply.request.body.append(contentsOf: bytes)
    }
    return reply.received > Self.mostRead * limits.body ? pushfleet_mhd_refuse() : pushfleet_mhd_go_on()
  }

  func completed(_ reply: HTTPReply) {
    forgetUnfinished(reply)
    open.withLock { $0.replies[ObjectIdentifier(reply)] = nil }
  }

  private func forgetUnfinished(_ reply: HTTPReply) {
    guard reply.unfinished > 0 else { return }
    open.withLock { $0.forget(reply) }
  }

  /// Without the white space behind it (RFC 9110, section 5.5).
  private func header(_ name: String, _ connection: OpaquePointer) -> [UInt8]? {
    guard let value = pushfleet_mhd_header(connection, name) else { return nil }
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
    MHD_add_response_header(response, "Content-Type", answer.contentType)
    // The library is lax about what is between chunks: where it sees another end than a proxy does, what follows must be no request.
    if reply.isChunked || open.withLock({ _ in daemon.isRetired }) { MHD_add_response_header(response, "Connection", "close") }
    for (name, value) in answer.headers { MHD_add_response_header(response, name, value) }
    return MHD_queue_response(connection, UInt32(answer.status), response)
  }
}
