import CMicroHTTPD
import Glibc

/// Serves short texts over HTTP on a thread of the library's own, apart from every delivery: GET and HEAD only.
///
/// So many connections at once, and so many idle seconds each: who opens connections and says nothing delays a probe by these seconds
/// at most.
public final class HTTPServer: @unchecked Sendable {
  // The library calls back on its own thread; `answer` is the only thing shared with it, and Sendable.
  public struct Answer: Sendable {
    public var status: Int
    public var contentType: String
    public var body: String

    public init(status: Int, contentType: String, body: String) {
      self.status = status
      self.contentType = contentType
      self.body = body
    }
  }

  /// Maps a path to what it answers.
  public typealias Handler = @Sendable (String) -> Answer

  private static let mostConnections: UInt32 = 128
  private static let idleSeconds: UInt32 = 2

  private let handler: Handler
  private var daemon: OpaquePointer?

  /// - Parameter host: a numeric address.
  public init(host: String, port: UInt16, handler: @escaping Handler) throws(HTTPServerError) {
    self.handler = handler
    let descriptor = try Self.listen(host, port)
    let context = Unmanaged.passUnretained(self).toOpaque()
    daemon = pushfleet_mhd_start(descriptor, respond, context, Self.mostConnections, Self.idleSeconds)
    // The library owns the descriptor now, and has closed it where it could not start.
    guard daemon != nil else { throw HTTPServerError(reason: "the server's thread could not be started", isPassing: true) }
  }

  /// Waits for answers under way.
  public func stop() {
    if let daemon { MHD_stop_daemon(daemon) }
    daemon = nil
  }

  deinit { stop() }

  fileprivate func answer(_ method: String, _ path: String) -> Answer {
    guard method == "GET" || method == "HEAD" else {
      return Answer(status: 405, contentType: "text/plain", body: "only GET and HEAD are answered here\n")
    }
    return handler(path)
  }

  /// A listening socket, non-blocking as the library wants it.
  private static func listen(_ host: String, _ port: UInt16) throws(HTTPServerError) -> Int32 {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &list) == 0, let address = list?.pointee else {
      throw HTTPServerError(reason: "\(host) is not a numeric address", isPassing: false)
    }
    defer { freeaddrinfo(list) }
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(address.ai_family, type, 0)
    guard descriptor >= 0 else { throw HTTPServerError(host, port, errno) }
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard bind(descriptor, address.ai_addr, address.ai_addrlen) == 0, Glibc.listen(descriptor, SOMAXCONN) == 0 else {
      let code = errno
      close(descriptor)
      throw HTTPServerError(host, port, code)
    }
    return descriptor
  }
}

/// Why nothing can be served.
public struct HTTPServerError: Error, CustomStringConvertible {
  let reason: String
  /// Trying again later may help: the port is in use, the address isn't there yet, something has run out.
  public let isPassing: Bool
  public var description: String { reason }

  fileprivate init(reason: String, isPassing: Bool) {
    self.reason = reason
    self.isPassing = isPassing
  }

  fileprivate init(_ host: String, _ port: UInt16, _ code: Int32) {
    reason = "\(host.contains(":") ? "[\(host)]" : host):\(port) can't be listened on: \(String(cString: strerror(code)))"
    isPassing = [EADDRINUSE, EADDRNOTAVAIL, EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(code)
  }
}

private func respond(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ path: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
  _ uploadSize: UnsafeMutablePointer<Int>?, _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let path, let method else { return pushfleet_mhd_refuse() }
  let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
  let answer = server.answer(String(cString: method), String(cString: path))
  return Array(answer.body.utf8).withUnsafeBytes {
    pushfleet_mhd_respond(connection, UInt32(answer.status), answer.contentType, $0.baseAddress, $0.count)
  }
}
