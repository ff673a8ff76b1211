import Glibc
import Reactor

/// A non-blocking listening socket, as the library needs it.
enum ListeningSocket {
  /// - Parameter host: an address, or a name. The first address of a name is used; the lookup blocks.
  static func open(_ host: String, _ port: UInt16) throws(HTTPServerError) -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &list)
    guard code == 0, let address = list?.pointee else {
      throw HTTPServerError(reason: "\(host): \(String(cString: gai_strerror(code)))", isPassing: code == EAI_AGAIN)
    }
    defer { freeaddrinfo(list) }
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(address.ai_family, type, 0)
    guard descriptor >= 0 else { throw failure(host, port, errno) }
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard bind(descriptor, address.ai_addr, address.ai_addrlen) == 0, listen(descriptor, SOMAXCONN) == 0 else {
      let code = errno
      close(descriptor)
      throw failure(host, port, code)
    }
    return descriptor
  }

  private static func failure(_ host: String, _ port: UInt16, _ code: Int32) -> HTTPServerError {
    let place = Endpoint(host: host, port: port)
    let reason =
      code == EADDRINUSE
      ? "\(place) is in use: end what listens there, or choose another port"
      : "\(place) can't be listened on: \(String(cString: strerror(code)))"
    return HTTPServerError(
      reason: reason, isPassing: [EADDRINUSE, EADDRNOTAVAIL, EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(code))
  }
}
