import Foundation
import Glibc

/// Ports that nobody listens on. They are let go before their user binds them, so a stranger may come first: then the
/// user fails to start, loudly.
public enum FreePorts {
  public static func take(_ count: Int) throws -> [UInt16] {
    var sockets: [Int32] = []
    defer { sockets.forEach { Glibc.close($0) } }
    return try (0..<count).map { _ in
      let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      guard socket >= 0 else { throw SetupFailure(call: "socket", code: errno) }
      sockets.append(socket)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let bound = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(socket, $0, size) == 0 && getsockname(socket, $0, &size) == 0
        }
      }
      guard bound else { throw SetupFailure(call: "bind", code: errno) }
      return UInt16(bigEndian: address.sin_port)
    }
  }
}
