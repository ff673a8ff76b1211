import Glibc

/// Addresses of 127.0.0.1.
public enum Loopback {
  /// Calls `bind` or `connect` with the address of a port, and returns its result.
  public static func call(
    _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ socket: Int32, port: UInt16
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { function(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
