import CLinux
import Glibc

enum Socket {
  /// Starts connecting. The socket becomes writable when done; then read `pendingError`.
  static func connecting(to address: SocketAddress) throws(SystemError) -> Descriptor {
    let descriptor = try stream(family: address.family)
    let code = address.withPointer { connect(descriptor.raw, $0, $1) }
    guard code == 0 || errno == EINPROGRESS else { throw SystemError("connect") }
    return descriptor
  }

  static func listening(on address: SocketAddress) throws(SystemError) -> Descriptor {
    let descriptor = try stream(family: address.family)
    set(descriptor.raw, SOL_SOCKET, SO_REUSEADDR, 1)
    guard address.withPointer({ bind(descriptor.raw, $0, $1) }) == 0 else { throw SystemError("bind") }
    guard listen(descriptor.raw, 1024) == 0 else { throw SystemError("listen") }
    return descriptor
  }

  static func accepted(_ listener: Int32) throws(SystemError) -> (raw: Int32, peer: SocketAddress)? {
    while true {
      let (raw, peer) = SocketAddress.filled {
        accept4(listener, $0, $1, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
      }
      if raw >= 0 { return (raw, peer) }
      switch errno {
      // Linux passes a dead connection's network error to accept (accept(2)).
      case EINTR, ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, ENONET, EOPNOTSUPP: continue
      case EAGAIN: return nil
      default: throw SystemError("accept")
      }
    }
  }

  static func localAddress(_ raw: Int32) -> SocketAddress { SocketAddress.filled { getsockname(raw, $0, $1) }.1 }

  /// The socket's pending error, 0 for none. Reading clears it.
  static func pendingError(_ raw: Int32) -> Int32 {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(raw, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
  }

  /// Configures an established connection: no Nagle delay, keep-alive for silent peers, `TCP_USER_TIMEOUT` for unacknowledged
  /// writes. The last two are a fallback behind the machines' own heartbeats.
  static func tune(_ raw: Int32, userTimeout: Double) {
    set(raw, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    set(raw, SOL_SOCKET, SO_KEEPALIVE, 1)
    set(raw, Int32(IPPROTO_TCP), TCP_KEEPIDLE, 30)
    set(raw, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 10)
    set(raw, Int32(IPPROTO_TCP), TCP_KEEPCNT, 3)
    set(raw, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(min(userTimeout * 1000, 2e9)))
  }

  /// Bytes that the peer's system hasn't acknowledged, including unsent ones.
  static func unacknowledged(_ raw: Int32) -> Int {
    var count: Int32 = 0
    return ioctl(raw, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
  }

  static func finishWriting(_ raw: Int32) { _ = shutdown(raw, Int32(SHUT_WR)) }

  private static func stream(family: Int32) throws(SystemError) -> Descriptor {
    try Descriptor(
      adopting: socket(family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0), of: "socket")
  }

  private static func set(_ raw: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    _ = setsockopt(raw, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }
}
