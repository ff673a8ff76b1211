import CMicroHTTPD
import Glibc
import Synchronization
import Wire

/// One server of the library and its connections. At the connection limit, the connection that has been idle longest is closed
/// for the next one.
final class HTTPDaemon: @unchecked Sendable {
  // `isRetired` is accessed under the server's lock.

  private struct Connections {
    var idle = IdleOrder<Int32>()
    /// The second in which each connection became idle, by its number in `idle`.
    var since: [Int] = []

    mutating func isIdle(_ id: Int, since now: Int) {
      if id >= since.count { since += Array(repeating: 0, count: id + 1 - since.count) }
      since[id] = now
    }
  }

  // The server ends this object after the last request. A safe reference could not be read in the server's deinit.
  unowned(unsafe) let server: HTTPServer
  private let limit: Int
  private let requestSeconds: Int
  private var daemon: OpaquePointer?
  /// Contains a connection until its descriptor is closed.
  private let connections = Mutex(Connections())
  /// True if the daemon accepts no connections and closes each with its next answer.
  var isRetired = false

  /// - Parameters:
  ///   - descriptor: a listening socket. The library owns it from now on, even if this fails.
  ///   - isDriven: uses no thread; the owner calls `turn`.
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
          connection_memory: HTTPServerLimits.memory, is_driven: isDriven ? 1 : 0,
          certificate: identity == nil ? nil : certificate.baseAddress?.assumingMemoryBound(to: CChar.self),
          key: identity == nil ? nil : key.baseAddress?.assumingMemoryBound(to: CChar.self))
        return pushfleet_mhd_start(descriptor, notified, arrived, respond, requestCompleted, context, &options)
      }
    }
    guard daemon != nil else {
      let hint = identity == nil ? "" : ", or its certificate and key are unusable"
      throw HTTPServerError(reason: "the server could not be started" + hint, isPassing: identity == nil)
    }
  }

  var count: Int { daemon.map { Int(pushfleet_mhd_connections($0)) } ?? 0 }

  /// Readable if there is work; negative if there is no such descriptor.
  var pollDescriptor: Int32 { daemon.map { pushfleet_mhd_poll_descriptor($0) } ?? -1 }

  /// Does the work that is ready, without waiting. Returns true if more work is ready.
  func turn() -> Bool { daemon.map { pushfleet_mhd_run($0) != 0 } ?? false }

  /// A duplicate of the listening descriptor; negative if none is available.
  func duplicateListener() -> Int32 { daemon.map { fcntl(pushfleet_mhd_listener($0), F_DUPFD_CLOEXEC, 0) } ?? -1 }

  func stopListening() {
    guard let daemon else { return }
    let descriptor = MHD_quiesce_daemon(daemon)
    if descriptor >= 0 { close(descriptor) }
  }

  /// Closes every connection. None may be suspended.
  func stop() {
    guard let daemon else { return }
    MHD_stop_daemon(daemon)
    self.daemon = nil
  }

  /// Closes connections that have been idle for too long. From any thread.
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

  /// A connection's request has begun, is complete, or is answered.
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

/// A connection has begun or ended. The library stores its number plus one.
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

/// The first line of a request has arrived.
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

/// The answer is sent, or the connection is closed.
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
