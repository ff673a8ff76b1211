import CMicroHTTPD
import Glibc

/// Serves short texts over HTTP on a thread of the library's own, apart from every delivery: at most 32 connections at once,
/// ten seconds each, GET only.
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

  private let handler: Handler
  private var daemon: OpaquePointer?

  /// - Throws: when the address can't be listened on.
  public init(host: String, port: UInt16, handler: @escaping Handler) throws(HTTPServerError) {
    self.handler = handler
    guard let address = Self.address(host, port) else { throw HTTPServerError(reason: "\(host) is not a numeric address") }
    let context = Unmanaged.passUnretained(self).toOpaque()
    daemon = withUnsafePointer(to: address) { storage in
      storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { pushfleet_mhd_start($0, respond, context) }
    }
    guard daemon != nil else { throw HTTPServerError(reason: "\(host):\(port) can't be listened on") }
  }

  /// Waits for answers under way.
  public func stop() {
    if let daemon { MHD_stop_daemon(daemon) }
    daemon = nil
  }

  deinit { stop() }

  fileprivate func answer(_ method: String, _ path: String) -> Answer {
    guard method == "GET" else { return Answer(status: 405, contentType: "text/plain", body: "only GET is answered here\n") }
    return handler(path)
  }

  private static func address(_ host: String, _ port: UInt16) -> sockaddr_storage? {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &list) == 0, let first = list else { return nil }
    defer { freeaddrinfo(first) }
    var storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) {
      $0.copyMemory(from: UnsafeRawBufferPointer(start: first.pointee.ai_addr, count: Int(first.pointee.ai_addrlen)))
    }
    return storage
  }
}

public struct HTTPServerError: Error, CustomStringConvertible {
  let reason: String
  public var description: String { reason }
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
