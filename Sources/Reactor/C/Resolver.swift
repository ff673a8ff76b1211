import CLinux
import Glibc
import Synchronization
import Wire

typealias Resolution = Result<[SocketAddress], ResolutionError>

struct ResolutionError: Error, Equatable, Sendable, CustomStringConvertible {
  let description: String
}

/// Resolves names for all loops of a process. Caches nothing, because Apple asks for a look-up before each connection.
/// Concurrent questions about the same name share one look-up. A few run at a time, each on a thread that ends with the queue.
final class Resolver: Sendable {
  static let shared = Resolver(lookUp: addresses)
  /// For hosts that strangers name: their name servers may be slow, which must not hold up other look-ups.
  static let ofStrangers = Resolver(lookUp: addresses)

  typealias Answer = @Sendable (Resolution) -> Void

  private struct Question {
    var answers: [(at: MonotonicTime, answer: Answer)] = []

    /// Removes the callers that have waited too long.
    mutating func takeOld(at now: MonotonicTime) -> [Answer] {
      let old = answers.prefix { now.seconds(since: $0.at) >= Resolver.timeout }
      answers.removeFirst(old.count)
      return old.map(\.answer)
    }
  }

  private struct State {
    /// Running or queued.
    var questions: [Endpoint: Question] = [:]
    var queue = Ring<Endpoint>()
    var threads = 0
  }

  static let threads = 4
  /// Seconds that a caller waits: as long as a connection may take.
  static let timeout = 10.0

  private let state = Mutex(State())
  private let now: @Sendable () -> MonotonicTime
  private let lookUp: @Sendable (Endpoint) -> Resolution

  init(
    now: @escaping @Sendable () -> MonotonicTime = { SystemClock.monotonic },
    lookUp: @escaping @Sendable (Endpoint) -> Resolution
  ) {
    self.now = now
    self.lookUp = lookUp
  }

  /// - Parameter answer: called once, on a resolver thread or within this call.
  func ask(_ endpoint: Endpoint, _ answer: @escaping Answer) {
    let now = now()
    let (old, isThreadNeeded) = state.withLock { state in
      if state.questions[endpoint] == nil { state.queue.append(endpoint) }
      var question = state.questions[endpoint] ?? Question()
      let old = question.takeOld(at: now)
      question.answers.append((now, answer))
      state.questions[endpoint] = question
      guard !state.queue.isEmpty, state.threads < Self.threads else { return (old, false) }
      state.threads += 1
      return (old, true)
    }
    Self.giveUp(endpoint, old)
    guard isThreadNeeded else { return }
    do throws(SystemError) { try startThread(named: "resolver") { [self] in work() } } catch { threadFailed(error) }
  }

  private func work() {
    while let endpoint = next() {
      let resolution = lookUp(endpoint)
      let question = state.withLock { $0.questions.removeValue(forKey: endpoint) }
      for (_, answer) in question?.answers ?? [] { answer(resolution) }
    }
  }

  /// The next name that a caller still waits for; nil ends the thread.
  private func next() -> Endpoint? {
    let now = now()
    while true {
      let (endpoint, old, isWanted) = state.withLock { state -> (Endpoint?, [Answer], Bool) in
        guard let endpoint = state.queue.popFirst() else {
          state.threads -= 1
          return (nil, [], false)
        }
        let old = state.questions[endpoint]?.takeOld(at: now) ?? []
        let isWanted = state.questions[endpoint]?.answers.isEmpty == false
        if !isWanted { state.questions[endpoint] = nil }
        return (endpoint, old, isWanted)
      }
      guard let endpoint else { return nil }
      Self.giveUp(endpoint, old)
      if isWanted { return endpoint }
    }
  }

  private static func giveUp(_ endpoint: Endpoint, _ answers: [Answer]) {
    for answer in answers { answer(.failure(ResolutionError(description: "\(endpoint.host): the resolver takes too long"))) }
  }

  /// Other threads, if any, continue with the queue.
  private func threadFailed(_ error: SystemError) {
    let failed = state.withLock { state -> [Answer] in
      state.threads -= 1
      guard state.threads == 0 else { return [] }
      var failed: [Answer] = []
      while let endpoint = state.queue.popFirst() {
        failed += state.questions.removeValue(forKey: endpoint)?.answers.map(\.answer) ?? []
      }
      return failed
    }
    for answer in failed { answer(.failure(ResolutionError(description: error.description))) }
  }

  // MARK: The system's resolver

  /// The address of a numeric host; nil for a name. Never blocks.
  static func numeric(_ endpoint: Endpoint) -> SocketAddress? {
    guard case .success(let addresses) = lookUp(endpoint, flags: AI_NUMERICHOST) else { return nil }
    return addresses.first
  }

  /// Blocks while the system's resolver works.
  @Sendable static func addresses(_ endpoint: Endpoint) -> Resolution { lookUp(endpoint, flags: 0) }

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

  /// Alternates address families, beginning with the resolver's first choice (RFC 8305 §4).
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
