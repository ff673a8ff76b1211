import Wire

/// What a pool knows of a provider that says nothing while it owes answers.
struct SilenceWatch {
  /// Seconds without an answer after which the provider is asked whether it answers at all.
  static let asksAfter = 4.0
  /// So much longer at most, after it has answered that and then nothing else: twice as long each time.
  private static let longestFactor = 8.0

  /// When the provider answered last, or was first waited for since.
  var heardAt = MonotonicTime(nanoseconds: 0)
  var checkAt = MonotonicTime.distantFuture
  private(set) var canary: Canary?
  private var factor = 1.0

  var asksAt: MonotonicTime { heardAt.advanced(bySeconds: Self.asksAfter * factor) }

  /// A push has been answered.
  mutating func heard(at now: MonotonicTime) {
    heardAt = now
    factor = 1
  }

  mutating func ask(with canary: Canary) { self.canary = canary }

  /// The provider answers canaries, and is to answer a push before it is asked as soon again.
  mutating func lengthen() { factor = min(2 * factor, Self.longestFactor) }

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

/// A provider may fall silent with all its streams taken and every push of the circuit's allowance in flight. Their answers won't come, even after it
/// has recovered, so it isn't waited for them to time out: as soon as the provider answers a ``Canary``, one push more may go out, and when that is
/// answered, the others.
extension ProviderPool {
  /// Answers are expected from now on.
  func watchSilence() {
    silence.heardAt = time.now
    guard silence.checkAt == .distantFuture else { return }
    silence.checkAt = silence.asksAt
    rearm()
  }

  func checkSilence(at now: MonotonicTime) {
    guard now >= silence.checkAt else { return }
    guard !isClosing, slots.expected > 0, health.stop == nil else { return silence.end() }
    let asksAt = silence.asksAt
    // A push that is answered late makes the silence to wait for shorter.
    silence.checkAt = min(max(asksAt, now.advanced(bySeconds: 1)), now.advanced(bySeconds: SilenceWatch.asksAfter))
    // Nothing goes to a provider that has asked for a pause.
    if now < asksAt || health.isPaused { return silence.endAsking() }
    guard silence.canary == nil, provider.probe(.answers) != nil else { return }
    silence.ask(
      with: Canary(
        time, connections.dialer, connections.endpoint.target, request: { [weak self] in self?.provider.probe(.answers) },
        answered: { [weak self] response, askedAt in
          // That a provider has no room, or is in trouble of another kind, pushes find out.
          guard response.status < 500, response.status != 429 else { return false }
          self?.canaryAnswered(askedAt: askedAt)
          return true
        }))
  }

  private func canaryAnswered(askedAt: MonotonicTime) {
    silence.endAsking()
    guard silence.heardAt < askedAt, !isClosing, health.stop == nil, !health.isPaused else { return }
    silence.lengthen()
    silence.heardAt = time.now
    overlookStreams()
    if trust.trialSlot >= 0 { endTrial(of: trust.trialSlot) }
    // The rate rises gently after an outage, not after an answer that was lost.
    if health.hasFailed { outageEnded() }
    health.answersAgain()
    connections.replaceSilent(since: askedAt)
    if isWaitingForRoom, connections.sendableStreams == 0 { connections.want() }
    advance()
    rearm()
  }
}
