import PushCore
import Wire

/// Decides from the provider's answers how many pushes may be in flight.
///
/// Three independent causes limit a pool: failures and throttling (``Circuit``), quota refusals in a row, a refused credential.
struct PoolHealth {
  /// Seconds between canaries while a credential is stopped.
  static let stoppedProbeInterval = 60.0
  /// Seconds. The longest pause of the whole pool that one answer can cause.
  static let longestPause = 600.0
  /// After this number of quota refusals in a row, the pool pauses: for `quotaPause` seconds unless the provider names a time.
  /// A single refusal may concern one device.
  static let quotaTrip = 10
  static let quotaPause = 60.0
  /// After this number of refusals in a row that each concern one device, the pool pauses briefly, and again after the same
  /// number. Pushes continue between the pauses, because later devices may be served.
  static let deviceTrip = 50
  static let devicePause = 1.0

  /// The provider refuses the credential, or an application's topic.
  struct Stop: Equatable {
    var reason: String
    /// The error code for a push that can't wait.
    var code: PushError
    var askAt: MonotonicTime
    /// True if an accepted push that was in flight ends the stop.
    var yields: Bool
    /// False while the refusal may concern a single push; a canary asks. → true
    var isCertain: Bool
    /// True if the provider is to be asked. → false
    var isDue: Bool

    /// - Parameter isCertain: false to ask at once whether the refusal concerns other pushes.
    init(_ reason: String, _ code: PushError, yields: Bool, isCertain: Bool, at now: MonotonicTime) {
      self.reason = reason
      self.code = code
      self.yields = yields
      self.isCertain = isCertain
      isDue = !isCertain
      askAt = isCertain ? now.advanced(bySeconds: PoolHealth.stoppedProbeInterval) : now
    }
  }

  /// The circuit has opened, or its pause was lengthened.
  enum Pause: Equatable {
    case begun(seconds: Double, reason: String)
    case lengthened
  }

  private var circuit = Circuit()
  private(set) var stop: Stop?
  /// The reason of the last pause.
  private(set) var pauseReason = ""
  private var quotaRefusals = 0
  private var deviceRefusals = 0
  /// True if a quota pause has begun since this was set to false.
  var isShortOfQuota = false
  private var hadOutage = false
  /// True if something failed and nothing succeeded since.
  private(set) var hasFailed = false

  /// The number of pushes that may be in flight.
  var allowance: Int { stop == nil ? circuit.allowance : 0 }
  var isPaused: Bool { circuit.allowance == 0 }
  /// True if one request at a time is allowed until the provider answers one.
  var isProbing: Bool { circuit.state == .halfOpen }

  /// Why pushes can't be sent again; nil if they can.
  var refusal: NotSentReason? { stop != nil ? .unauthorised : isPaused ? .unreachable : nil }

  // MARK: Answers

  /// Updates the health from an answer.
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
      // A single refusal says nothing about other pushes.
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

  /// A push got no answer.
  mutating func timedOut(at now: MonotonicTime, using random: inout RandomSource) -> Pause? {
    failed("requests time out", at: now, using: &random)
  }

  /// An answer other than a quota refusal came.
  mutating func hasQuota() { quotaRefusals = 0 }

  private mutating func failed(_ reason: String, at now: MonotonicTime, using random: inout RandomSource) -> Pause? {
    guard let wait = circuit.failed(at: now, using: &random) else { return nil }
    pauseReason = reason
    hasFailed = true
    return .begun(seconds: wait, reason: reason)
  }

  /// Adds up to a tenth, so that workers don't return all at once, and limits the pause to `longestPause`.
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

  /// The provider accepts the credential, or there is another.
  mutating func resumeCredential() {
    stop = nil
    hasFailed = false
  }

  // MARK: Connections and time

  /// There is no connection, and none could be made.
  mutating func lostProvider() {
    hadOutage = true
    hasFailed = true
  }

  /// - Returns: true if the provider had been unreachable; the first request is then a probe.
  mutating func connected() -> Bool {
    guard hadOutage else { return false }
    hadOutage = false
    circuit.probe()
    return true
  }

  /// A silent provider has answered a canary; the first push is a probe.
  mutating func answersAgain() {
    circuit.probe()
    hasFailed = true
  }

  var deadline: MonotonicTime {
    guard let stop, !stop.isDue else { return circuit.deadline }
    return min(circuit.deadline, stop.askAt)
  }

  /// - Returns: true if a pause has ended.
  mutating func advance(to now: MonotonicTime) -> Bool {
    let wasPaused = isPaused
    circuit.advance(to: now)
    if let stop, now >= stop.askAt { self.stop?.isDue = true }
    return wasPaused && !isPaused
  }
}
