import HTTP2
import PushCore
import Wire

/// A project's access token. Renewed early, and used until it expires if the endpoint is down. Expiry is measured on the
/// monotonic clock from the token's arrival: a jump of the wall clock can't keep a dead token in use.
final class AccessTokens {
  /// Renew a token this number of seconds before it expires; a short-lived token at half of its life.
  static let renewEarly = 300.0
  /// Stop using a token this number of seconds before it expires: it could expire on the way.
  static let safetyMargin = 5.0
  /// Seconds for one fetch.
  static let timeout = 15.0
  /// If nothing can be sent, a second fetch starts after this number of seconds without an answer, and is replaced at the same
  /// interval. An endpoint may recover long before the first fetch times out.
  static let hedgeDelay = 2.0
  /// Seconds between two tokens fetched because of a refusal: a new token that is refused too is not to blame.
  static let renewalFloor = 60.0

  struct Token {
    /// Of a push with the token.
    let headers: HeaderTemplate
    let generation: Int
    let renewAt: MonotonicTime
    let expiresAt: MonotonicTime
  }

  weak var pool: ProviderPool?
  private let credentials: FCMCredentials
  private let time: Turn
  private let dialer: any Dialer
  private var generation = 0
  private var token: Token?
  /// The token for pushes; nil if `token` must be checked first.
  private(set) var current: Token?
  private var fetch: SingleRequest?
  /// The second fetch, beside `fetch`.
  private var second: SingleRequest?
  private var secondAt: MonotonicTime?
  /// `backoff` is for answers without a token; `shortBackoff` is for missing answers while nothing can be sent.
  private var backoff = Backoff(base: 1, cap: 60)
  private var shortBackoff = Backoff(base: 0.5, cap: 1.5)
  private var retryAt: MonotonicTime?
  private var forcedAt: MonotonicTime?
  private var lastFailure = ""
  /// True if the endpoint's last answer refused the account.
  private(set) var isRefused = false
  private var isStopped = false

  init(_ credentials: FCMCredentials, time: Turn, dialer: any Dialer) {
    self.credentials = credentials
    self.time = time
    self.dialer = dialer
  }

  /// Nil if there is an authorisation, or no error is known.
  func state(at now: MonotonicTime) -> PoolState? {
    if let current, now < current.expiresAt { return nil }
    if fetch != nil { return .connecting }
    return lastFailure.isEmpty ? nil : .backingOff(reason: lastFailure)
  }

  /// The generation of the current token. Starts a fetch if one is due, none is in progress, and no retry delay is running.
  func authorise(at now: MonotonicTime) -> Int? {
    if let current, now < current.renewAt { return current.generation }
    let usable = isUsable(at: now) ? token : nil
    if now >= usable?.renewAt ?? now { begin(at: now) }
    current = usable
    return usable?.generation
  }

  /// The provider refused `generation`. Returns false if there is no other token at present.
  /// - Parameter isTrusted: the provider accepts other pushes with the token, so it is used until there is another.
  func refused(_ generation: Int, isTrusted: Bool, at now: MonotonicTime) -> Bool {
    current = nil
    if let token, token.generation != generation { return true }
    if token != nil, fetch == nil {
      if let forcedAt, now.seconds(since: forcedAt) < Self.renewalFloor { return false }
      forcedAt = now
    }
    if !isTrusted { token = nil }
    begin(at: now)
    return fetch != nil
  }

  func stop() {
    isStopped = true
    endFetches()
  }

  private func endFetches() {
    fetch?.abandon()
    second?.abandon()
    fetch = nil
    second = nil
    secondAt = nil
  }

  var deadline: MonotonicTime {
    if fetch != nil { return secondAt ?? .distantFuture }
    return retryAt ?? token?.renewAt ?? .distantFuture
  }

  func deadlineReached(at now: MonotonicTime) {
    if let retryAt, now >= retryAt { self.retryAt = nil }
    if let token, now >= token.renewAt { begin(at: now) }
    if let secondAt, now >= secondAt { beginSecond(at: now) }
  }

  private func isUsable(at now: MonotonicTime) -> Bool { token.map { now < $0.expiresAt } ?? false }

  private func beginSecond(at now: MonotonicTime) {
    secondAt = now.advanced(bySeconds: Self.hedgeDelay)
    guard !isUsable(at: now) else { return }
    second?.abandon()
    second = makeFetch { [weak self] answer in
      if case .unanswered = answer { self?.second = nil } else { self?.ended(answer) }
    }
  }

  private func makeFetch(_ completion: @escaping (AccessTokenAnswer) -> Void) -> SingleRequest? {
    do {
      return try .accessToken(credentials, time, dialer, timeout: Self.timeout, completion: completion)
    } catch {
      completion(.failed("the assertion can't be signed: \(error)"))
      return nil
    }
  }

  private func begin(at now: MonotonicTime) {
    guard fetch == nil, !isStopped else { return }
    if let retryAt, now < retryAt { return }
    retryAt = nil
    fetch = makeFetch { [weak self] in self?.ended($0) }
    if fetch != nil { secondAt = now.advanced(bySeconds: Self.hedgeDelay) }
  }

  private func ended(_ answer: AccessTokenAnswer) {
    guard !isStopped else { return }
    endFetches()
    current = nil
    let now = time.now
    switch answer {
    case .token(let bytes, let lifetime):
      generation += 1
      backoff.reset()
      shortBackoff.reset()
      lastFailure = ""
      isRefused = false
      token = Token(
        headers: credentials.headers(bytes), generation: generation,
        renewAt: now.advanced(bySeconds: max(lifetime - Self.renewEarly, lifetime / 2)),
        expiresAt: now.advanced(bySeconds: max(lifetime - Self.safetyMargin, lifetime / 2)))
      pool?.observed(.tokenRefreshed)
      pool?.authorisationSettled()
    case .refused(let why):
      isRefused = true
      failed("the token endpoint refuses the account: \(why)", after: backoff.next(using: &time.random), at: now)
      pool?.observed(.tokenRefused(reason: why, credential: "\(credentials.account)"))
    case .failed(let why):
      failed("no access token: \(why)", after: backoff.next(using: &time.random), at: now)
      pool?.observed(.tokenFailed(reason: lastFailure))
    case .unanswered(let why):
      let isAwaited = !isUsable(at: now)
      let seconds = isAwaited ? shortBackoff.next(using: &time.random) : backoff.next(using: &time.random)
      failed("no access token: \(why)", after: seconds, at: now)
      pool?.observed(.tokenFailed(reason: lastFailure))
    }
  }

  private func failed(_ reason: String, after seconds: Double, at now: MonotonicTime) {
    lastFailure = reason
    retryAt = now.advanced(bySeconds: seconds)
    if isUsable(at: now) { pool?.authorisationSettled() } else { pool?.authorisationFailed() }
  }
}
