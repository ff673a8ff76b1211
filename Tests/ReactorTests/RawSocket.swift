import Glibc
import Reactor
import TestSupport

/// A blocking client socket outside the loop: a peer that does what no link would.
final class RawSocket {
  let raw: Int32

  init(to port: UInt16) {
    raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    precondition(Loopback.call(connect, raw, port: port) == 0, "loopback refuses")
  }

  deinit { close(raw) }

  func send(_ bytes: [UInt8]) { precondition(Glibc.send(raw, bytes, bytes.count, 0) == bytes.count) }

  /// What has arrived; nil for nothing yet, empty for the end.
  func receive() -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = recv(raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    return count < 0 ? nil : Array(buffer[..<count])
  }

  func finishWriting() { shutdown(raw, Int32(SHUT_WR)) }

  /// The next close sends a reset.
  func resetOnClose() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(raw, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }
}
