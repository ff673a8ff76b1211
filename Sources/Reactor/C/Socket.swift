import CLinux
import Glibc

/// The socket calls, non-blocking throughout.
enum Socket {
  /// Starts a connection; its outcome shows as writability, then by `pendingError`.
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

  /// Nil when nobody waits.
  static func accepted(_ listener: Int32) throws(SystemError) -> (raw: Int32, peer: SocketAddress)? {
    while true {
      let (raw, peer) = SocketAddress.filled {
        accept4(listener, $0, $1, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
      }
      if raw >= 0 { return (raw, peer) }
      switch errno {
      // Linux hands a dead connection's own network error to accept (accept(2)).
      case EINTR, ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, ENONET, EOPNOTSUPP: continue
      case EAGAIN: return nil
      default: throw SystemError("accept")
      }
    }
  }

  static func localAddress(_ raw: Int32) -> SocketAddress { SocketAddress.filled { getsockname(raw, $0, $1) }.1 }

  /// What the kernel has against the socket; 0 for nothing. Reading clears it.
  static func pendingError(_ raw: Int32) -> Int32 {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(raw, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
  }

  /// For an established connection: no Nagle delay; a silent peer is noticed by keep-alive, an unacknowledged write by
  /// `TCP_USER_TIMEOUT`. Both are a last resort behind the machines' own heartbeats.
  static func tune(_ raw: Int32, userTimeout: Double) {
    set(raw, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    set(raw, SOL_SOCKET, SO_KEEPALIVE, 1)
    set(raw, Int32(IPPROTO_TCP), TCP_KEEPIDLE, 30)
    set(raw, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 10)
    set(raw, Int32(IPPROTO_TCP), TCP_KEEPCNT, 3)
    set(raw, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(min(userTimeout * 1000, 2e9)))
  }

  /// Bytes that the peer's system hasn't acknowledged, those not yet sent among them.
  static func unacknowledged(_ raw: Int32) -> Int {
    var count: Int32 = 0
    return ioctl(raw, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
  }

  static func finishWriting(_ raw: Int32) { _ = shutdown(raw, Int32(SHUT_WR)) }

  private static func stream(family: Int32) throws(SystemError) -> Descriptor {
    let raw = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard raw >= 0 else { throw SystemError("socket") }
    return Descriptor(adopting: raw)
  }

  private static func set(_ raw: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    _ = setsockopt(raw, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }
}
