import Wire

/// Tracks a provider that doesn't answer although answers are due.
struct SilenceDetector {
  /// Seconds without an answer before a canary asks.
  static let asksAfter = 4.0
  /// If the provider answers the canary but no push, the wait doubles each time, up to this factor.
  private static let longestFactor = 8.0
  /// Seconds after an unanswered push, in which waiting for another push's answer doesn't begin anew.
  private static let goesOnFor = 60.0

  /// When the provider last answered, or when waiting began.
  private(set) var heardAt = MonotonicTime(nanoseconds: 0)
  /// When the last push timed out; nil if the provider has answered since.
  var timedOutAt: MonotonicTime?
  var checkAt = MonotonicTime.distantFuture
  var canary: ProviderProbe?
  var isReported = false
  private var factor = 1.0

  var asksAt: MonotonicTime { heardAt.advanced(bySeconds: Self.asksAfter * factor) }

  /// A push waits for its answer, and no other does.
  mutating func begin(at now: MonotonicTime) {
    if let timedOutAt, now.seconds(since: timedOutAt) < Self.goesOnFor { return }
    heardAt = now
  }

  mutating func heard(at now: MonotonicTime) {
    (heardAt, timedOutAt, isReported) = (now, nil, false)
    factor = 1
  }

  /// Doubles the wait before the next canary, until a push is answered.
  mutating func canaryAnswered(at now: MonotonicTime) {
    factor = min(2 * factor, Self.longestFactor)
    (heardAt, timedOutAt) = (now, nil)
  }

  mutating func endAsking() {
    canary?.stop()
    canary = nil
  }

  mutating func end() {
    endAsking()
    checkAt = .distantFuture
    factor = 1
  }
}

/// A provider may fall silent while all streams or the whole allowance are in use. Their answers won't come, even after it
/// recovers, so the pool doesn't wait for timeouts. Once the provider answers a ``ProviderProbe``, one more push may be sent;
/// when it is answered, others follow.
extension ProviderPool {
  func watchSilence() {
    silence.begin(at: time.now)
    guard silence.checkAt == .distantFuture else { return }
    silence.checkAt = silence.asksAt
    rearm()
  }

  func checkSilence(at now: MonotonicTime) {
    guard now >= silence.checkAt else { return }
    guard !isClosing, slots.expected > 0, health.stop == nil else { return silence.end() }
    let asksAt = silence.asksAt
    // A late answer shortens the wait again.
    silence.checkAt = min(max(asksAt, now.advanced(bySeconds: 1)), now.advanced(bySeconds: SilenceDetector.asksAfter))
    // Send nothing to a provider that asked for a pause.
    if now < asksAt || health.isPaused { return silence.endAsking() }
    if !silence.isReported { observed(.silent(seconds: now.seconds(since: silence.heardAt))) }
    silence.isReported = true
    guard silence.canary == nil, provider.probe(.answers) != nil else { return }
    silence.canary = ProviderProbe(
      time, connections.dialer, connections.endpoint, request: { [weak self] in self?.provider.probe(.answers) },
      answered: { [weak self] response, askedAt in
        // Pushes find out about overload and other trouble.
        guard response.status < 500, response.status != 429 else { return false }
        self?.canaryAnswered(askedAt: askedAt)
        return true
      })
  }

  private func canaryAnswered(askedAt: MonotonicTime) {
    silence.endAsking()
    guard silence.heardAt < askedAt, !isClosing, health.stop == nil, !health.isPaused else { return }
    silence.canaryAnswered(at: time.now)
    overlookStreams()
    if trust.trialSlot >= 0 { endTrial(of: trust.trialSlot) }
    // The rate ramps up after an outage, not after a lost answer.
    if health.hasFailed { outageEnded() }
    health.answersAgain()
    connections.replaceSilent(since: askedAt)
    if isWaitingForRoom, connections.sendableStreams == 0 { connections.want() }
    advance()
    rearm()
  }
}
