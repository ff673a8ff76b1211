import Glibc

extension HTTPRequest {
  /// The address of the connection's other end, such as `192.0.2.7`; empty if it is unknown. Only while the request is unanswered.
  public var peerAddress: [UInt8] {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    let isKnown = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { peer in
        getpeername(descriptor, peer, &length) == 0
          && getnameinfo(peer, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
      }
    }
    return isKnown ? text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) } : []
  }
}
