import CMicroHTTPD
import Glibc
import Synchronization
import Wire

/// One of the library's servers, and its connections: where they are as many as may be, the one that has been silent for
/// longest makes room for the next.
final class HTTPDaemon: @unchecked Sendable {
  // `isRetired` is touched under the server's lock.

  /// Connections, idle as long as they have no whole request.
  private struct Connections {
    var idle = IdleOrder<Int32>()
    /// When each began to be so, by its number in `idle`.
    var since: [Int] = []

    mutating func isIdle(_ id: Int, since now: Int) {
      if id >= since.count { since += Array(repeating: 0, count: id + 1 - since.count) }
      since[id] = now
    }
  }

  // Its end ends this, which its requests come before: no safe reference could be read in its deinit.
  unowned(unsafe) let server: HTTPServer
  private let limit: Int
  private let requestSeconds: Int
  private var daemon: OpaquePointer?
  /// A connection is among them until its descriptor is closed.
  private let connections = Mutex(Connections())
  /// Takes no further connections, and ends each with its next answer.
  var isRetired = false

  /// - Parameters:
  ///   - descriptor: listens; it is the library's from now on, whatever comes of it.
  ///   - isDriven: without a thread of its own: `turn` is called for what is to be done.
  init(
    _ server: HTTPServer, _ descriptor: Int32, _ limits: HTTPServerLimits, _ identity: HTTPServerIdentity?, isDriven: Bool
  ) throws(HTTPServerError) {
    self.server = server
    limit = Int(limits.connections)
    requestSeconds = limits.requestSeconds
    let context = Unmanaged.passUnretained(self).toOpaque()
    let certificate = identity.map { $0.certificate + [0] } ?? []
    let key = identity.map { $0.key + [0] } ?? []
    daemon = certificate.withUnsafeBytes { certificate in
      key.withUnsafeBytes { key in
        var options = pushfleet_mhd_options(
          connections: limits.connections + HTTPServerLimits.passing, idle_seconds: limits.idle,
          connection_memory: limits.memory, is_driven: isDriven ? 1 : 0,
          certificate: identity == nil ? nil : certificate.baseAddress?.assumingMemoryBound(to: CChar.self),
          key: identity == nil ? nil : key.baseAddress?.assumingMemoryBound(to: CChar.self))
        return pushfleet_mhd_start(descriptor, notified, arrived, respond, requestCompleted, context, &options)
      }
    }
    guard daemon != nil else {
      let hint = identity == nil ? "" : ", or certificate and key can't be used"
      throw HTTPServerError(reason: "the server could not be started" + hint, isPassing: identity == nil)
    }
  }

  /// Open connections.
  var count: Int { daemon.map { Int(pushfleet_mhd_connections($0)) } ?? 0 }

  /// Readable when there is something to do; negative where there is none.
  var pollDescriptor: Int32 { daemon.map { pushfleet_mhd_poll_descriptor($0) } ?? -1 }

  /// Does what there is to do, and doesn't wait. True when more is to be done at once.
  func turn() -> Bool { daemon.map { pushfleet_mhd_run($0) != 0 } ?? false }

  /// Another descriptor of the listening socket; negative where there is none to be had.
  func duplicateListener() -> Int32 { daemon.map { fcntl(pushfleet_mhd_listener($0), F_DUPFD_CLOEXEC, 0) } ?? -1 }

  /// Accepts nobody from now on.
  func stopListening() {
    guard let daemon else { return }
    let descriptor = MHD_quiesce_daemon(daemon)
    if descriptor >= 0 { close(descriptor) }
  }

  /// Ends every connection. None may be laid aside.
  func stop() {
    guard let daemon else { return }
    MHD_stop_daemon(daemon)
    self.daemon = nil
  }

  /// Ends connections that have had no whole request for too long, from any thread.
  func endSlow() {
    let now = Self.seconds()
    connections.withLock { connections in
      while let oldest = connections.idle.oldest, now - connections.since[oldest] > requestSeconds {
        if let descriptor = connections.idle.takeOldest() { shutdown(descriptor, Int32(SHUT_RDWR)) }
      }
    }
  }

  private static func seconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return time.tv_sec
  }

  // MARK: On the thread that serves

  fileprivate func opened(_ descriptor: Int32) -> Int {
    let now = Self.seconds()
    return connections.withLock { connections in
      // The peer sees the end at once, the library a moment later.
      if connections.idle.count >= limit, let oldest = connections.idle.takeOldest() { shutdown(oldest, Int32(SHUT_RDWR)) }
      let id = connections.idle.open(descriptor)
      connections.isIdle(id, since: now)
      return id
    }
  }

  fileprivate func closed(_ id: Int) { connections.withLock { $0.idle.close(id) } }

  /// Of a connection: its request has begun, is whole, or is answered.
  fileprivate func note(_ step: HTTPReply.Step, _ connection: OpaquePointer) {
    let id = pushfleet_mhd_id(connection) - 1
    guard id >= 0 else { return }
    let now = Self.seconds()
    connections.withLock { connections in
      if step == .answering { return connections.idle.busy(id) }
      connections.idle.idle(id)
      connections.isIdle(id, since: now)
    }
  }
}

private func daemon(_ context: UnsafeMutableRawPointer) -> HTTPDaemon {
  Unmanaged<HTTPDaemon>.fromOpaque(context).takeUnretainedValue()
}

/// A connection has begun or ended. It is known by its number plus one.
private func notified(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
  _ code: MHD_ConnectionNotificationCode
) {
  guard let context, let connection, let state else { return }
  if pushfleet_mhd_is_start(code) != 0 {
    state.pointee = UnsafeMutableRawPointer(bitPattern: daemon(context).opened(pushfleet_mhd_descriptor(connection)) + 1)
  } else if let id = state.pointee.map({ Int(bitPattern: $0) - 1 }) {
    daemon(context).closed(id)
    state.pointee = nil
  }
}

/// The first line of a request has come.
private func arrived(_ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ connection: OpaquePointer?)
  -> UnsafeMutableRawPointer?
{
  if let context, let connection { daemon(context).note(.headers, connection) }
  let bytes = target.map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
  return Unmanaged.passRetained(HTTPReply(target: bytes ?? [])).toOpaque()
}

private func respond(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ path: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
  _ uploadSize: UnsafeMutablePointer<Int>?, _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let connection, let path, let method, let version, let pointer = state?.pointee else {
    return pushfleet_mhd_refuse()
  }
  let daemon = daemon(context)
  let reply = Unmanaged<HTTPReply>.fromOpaque(pointer).takeUnretainedValue()
  if let size = uploadSize?.pointee, size > 0, reply.step == .body {
    uploadSize?.pointee = 0
    return daemon.server.take(UnsafeRawBufferPointer(start: upload, count: size), reply, connection)
  }
  if reply.step == .body { daemon.note(.answering, connection) }
  return daemon.server.go(reply, connection, RequestLine(method: method, target: path, version: version), daemon)
}

/// The answer is out, or the connection is gone.
private func requestCompleted(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
  _ reason: MHD_RequestTerminationCode
) {
  guard let context, let connection, let pointer = state?.pointee else { return }
  state?.pointee = nil
  let daemon = daemon(context)
  daemon.note(.over, connection)
  daemon.server.completed(Unmanaged<HTTPReply>.fromOpaque(pointer).takeRetainedValue())
}
