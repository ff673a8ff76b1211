import Foundation
import Glibc
import Synchronization

/// Free ports, each given once by this process. They are released before their user binds them. The system chooses no port of
/// this range for outgoing connections (`net.ipv4.ip_local_port_range`), so only another server can be faster.
public enum FreePorts {
  private static let range = 20_000..<32_768
  private static let given = Atomic(Int.random(in: range))

  public static func take(_ count: Int) throws -> [UInt16] {
    var ports: [UInt16] = []
    for _ in range where ports.count < count {
      let number = given.wrappingAdd(1, ordering: .relaxed).oldValue
      let port = UInt16(range.lowerBound + number % range.count)
      if try isFree(port) { ports.append(port) }
    }
    guard ports.count == count else { throw SetupFailure(call: "bind", code: EADDRINUSE) }
    return ports
  }

  private static func isFree(_ port: UInt16) throws -> Bool {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw SetupFailure(call: "socket", code: errno) }
    defer { Glibc.close(socket) }
    // A process that is being started has a copy of the socket for a moment. With this option, the copy keeps nobody from the port.
    var isOn: Int32 = 1
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
    let result = Loopback.call(bind, socket, port: port)
    guard result == 0 || errno == EADDRINUSE else { throw SetupFailure(call: "bind", code: errno) }
    return result == 0
  }
}
