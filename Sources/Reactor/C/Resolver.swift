import Glibc

/// Addresses in the order to be tried, or why there are none.
typealias Resolution = Result<[SocketAddress], ResolutionError>

struct ResolutionError: Error, Equatable, Sendable, CustomStringConvertible {
  let description: String
}

/// Names to addresses. Nothing is cached: each new connection asks again (Apple: resolve before each connection).
enum Resolver {
  /// The address a numeric host stands for; nil for a name. Never blocks.
  static func numeric(_ endpoint: Endpoint) -> SocketAddress? {
    guard case .success(let addresses) = lookUp(endpoint, flags: AI_NUMERICHOST) else { return nil }
    return addresses.first
  }

  /// Blocks for as long as the system's resolver takes.
  static func addresses(_ endpoint: Endpoint) -> Resolution { lookUp(endpoint, flags: 0) }

  /// Resolves on a thread of its own and answers on the mailbox's loop.
  static func start(_ endpoint: Endpoint, mailbox: Mailbox, _ answer: @escaping @Sendable (EventLoop, Resolution) -> Void) {
    do throws(SystemError) {
      try startThread(named: "resolver") {
        let resolution = addresses(endpoint)
        mailbox.post { loop in answer(loop, resolution) }
      }
    } catch {
      let reason = error.description
      mailbox.post { loop in answer(loop, .failure(ResolutionError(description: reason))) }
    }
  }

  private static func lookUp(_ endpoint: Endpoint, flags: Int32) -> Resolution {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = flags | AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(endpoint.host, String(endpoint.port), &hints, &list)
    guard code == 0 else {
      return .failure(ResolutionError(description: "\(endpoint.host): \(String(cString: gai_strerror(code)))"))
    }
    defer { freeaddrinfo(list) }
    var found: [SocketAddress] = []
    var next = list
    while let info = next {
      found.append(SocketAddress(info.pointee))
      next = info.pointee.ai_next
    }
    return .success(alternating(found))
  }

  /// The families take turns, beginning with the resolver's first choice (RFC 8305 §4).
  static func alternating(_ addresses: [SocketAddress]) -> [SocketAddress] {
    guard let first = addresses.first else { return [] }
    let preferred = addresses.filter { $0.family == first.family }
    let others = addresses.filter { $0.family != first.family }
    var merged: [SocketAddress] = []
    for index in 0..<max(preferred.count, others.count) {
      if index < preferred.count { merged.append(preferred[index]) }
      if index < others.count { merged.append(others[index]) }
    }
    return merged
  }
}
