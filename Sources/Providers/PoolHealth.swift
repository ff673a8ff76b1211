import PushCore
import Wire

/// Whether a provider takes pushes at present: its answers decide how many may be in flight.
///
/// Three things hold a pool back, each for itself: failures and throttling (``Circuit``), refusals for want of quota, which pause it when
/// there are several in a row, and a credential that the provider refuses.
struct PoolHealth {
  /// Seconds between canaries that ask whether a stopped credential is accepted again.
  static let stoppedProbeInterval = 60.0
  /// The longest the whole pool waits on the word of one answer, in seconds.
  static let longestPause = 600.0
  /// Refusals for want of quota in a row that make the pool pause, for `quotaPause` seconds where the provider doesn't say how long: a
  /// single one may be about one device.
  static let quotaTrip = 10
  static let quotaPause = 60.0
  /// Refusals in a row that each speak of one device alone: so many of them speak of the provider, which has a pause then, and after each
  /// further so many. Between the pauses they go out, as the devices that would be served may be behind them.
  static let deviceTrip = 50
  static let devicePause = 1.0

  /// The provider refuses the credential, or an application's topic.
  struct Stop: Equatable {
    var reason: String
    /// What a push ends with that can't wait.
    var code: PushError
    var askAt: MonotonicTime
    /// A push that was in flight and is taken shows that others are.
    var yields: Bool
    /// False while the refusal may concern one push alone: a canary is asking. → true
    var isCertain: Bool
    /// The provider is to be asked. → false
    var isDue: Bool

    /// - Parameter isCertain: false to ask at once whether the refusal concerns others.
    init(_ reason: String, _ code: PushError, yields: Bool, isCertain: Bool, at now: MonotonicTime) {
      self.reason = reason
      self.code = code
      self.yields = yields
      self.isCertain = isCertain
      isDue = !isCertain
      askAt = isCertain ? now.advanced(bySeconds: PoolHealth.stoppedProbeInterval) : now
    }
  }

  /// The circuit has opened, or stays open for longer than it was to.
  enum Pause: Equatable {
    case begun(seconds: Double, reason: String)
    case lengthened
  }

  private var circuit = Circuit()
  private(set) var stop: Stop?
  /// Of the last pause that has begun.
  private(set) var pauseReason = ""
  private var quotaRefusals = 0
  private var deviceRefusals = 0
  /// A pause for want of quota has begun since this was last false.
  var isShortOfQuota = false
  private var hadOutage = false
  /// Something has failed, and nothing was served since.
  private(set) var hasFailed = false

  /// How many pushes may be in flight in all.
  var allowance: Int { stop == nil ? circuit.allowance : 0 }
  var isPaused: Bool { circuit.allowance == 0 }
  /// One request at a time until the provider has answered one.
  var isProbing: Bool { circuit.state == .halfOpen }

  /// Why nothing goes out that has left before; nil where it may.
  var refusal: NotSentReason? { stop != nil ? .unauthorised : isPaused ? .unreachable : nil }

  // MARK: Answers

  /// What an answer says of the provider, whatever it says of its push.
  mutating func answered(_ meaning: ReplyMeaning, at now: MonotonicTime, using random: inout RandomSource) -> Pause? {
    guard case .retry(let kind, _) = meaning.reaction else {
      deviceRefusals = 0
      served()
      return nil
    }
    switch kind.scope {
    case .device:
      deviceRefusals += 1
      guard deviceRefusals.isMultiple(of: Self.deviceTrip) else {
        deviceRefusals < Self.deviceTrip ? served() : circuit.succeeded()
        return nil
      }
      return pause(seconds: Self.devicePause, reason: meaning.reason, at: now, using: &random)
    case .connection: return nil
    case .provider where kind == .quota:
      // One alone says nothing of the others.
      quotaRefusals += 1
      guard quotaRefusals >= Self.quotaTrip else { return nil }
      if !isPaused { isShortOfQuota = true }
      let wait = meaning.retryAfter.map(Double.init) ?? Self.quotaPause
      return pause(seconds: wait, reason: meaning.reason, at: now, using: &random)
    case .provider:
      guard let wait = meaning.retryAfter else { return failed(meaning.reason, at: now, using: &random) }
      return pause(seconds: Double(wait), reason: meaning.reason, at: now, using: &random)
    }
  }

  private mutating func served() {
    circuit.succeeded()
    if stop == nil { hasFailed = false }
  }

  /// No answer came to a push.
  mutating func timedOut(at now: MonotonicTime, using random: inout RandomSource) -> Pause? {
    failed("requests time out", at: now, using: &random)
  }

  /// The provider has dealt with a push other than for its quota.
  mutating func hasQuota() { quotaRefusals = 0 }

  private mutating func failed(_ reason: String, at now: MonotonicTime, using random: inout RandomSource) -> Pause? {
    guard let wait = circuit.failed(at: now, using: &random) else { return nil }
    pauseReason = reason
    hasFailed = true
    return .begun(seconds: wait, reason: reason)
  }

  /// For a little longer than asked, so that many workers don't come back at once, and no longer than an answer may ask.
  mutating func pause(
    seconds: Double, reason: String, at now: MonotonicTime, using random: inout RandomSource
  ) -> Pause? {
    let wasPaused = isPaused
    let wait = min(seconds, Self.longestPause) * Double.random(in: 1...1.1, using: &random)
    guard circuit.pause(seconds: wait, at: now) else { return nil }
    hasFailed = true
    if wasPaused { return .lengthened }
    pauseReason = reason
    return .begun(seconds: wait, reason: reason)
  }

  // MARK: The credential

  mutating func stopCredential(_ stop: Stop) {
    self.stop = stop
    hasFailed = true
  }

  /// The provider takes the credential, or there is another one.
  mutating func resumeCredential() {
    stop = nil
    hasFailed = false
  }

  // MARK: Connections and time

  /// No connection is there and none could be made.
  mutating func lostProvider() {
    hadOutage = true
    hasFailed = true
  }

  /// - Returns: true when the provider had been unreachable: what goes out first is a probe.
  mutating func connected() -> Bool {
    guard hadOutage else { return false }
    hadOutage = false
    circuit.probe()
    return true
  }

  /// A provider that was silent has answered, though no push yet: what goes out first is a probe.
  mutating func answersAgain() {
    circuit.probe()
    hasFailed = true
  }

  var deadline: MonotonicTime {
    guard let stop, !stop.isDue else { return circuit.deadline }
    return min(circuit.deadline, stop.askAt)
  }

  /// - Returns: true when a pause has ended.
  mutating func advance(to now: MonotonicTime) -> Bool {
    let wasPaused = isPaused
    circuit.advance(to: now)
    if let stop, now >= stop.askAt { self.stop?.isDue = true }
    return wasPaused && !isPaused
  }
}
