import Wire

/// Which of a key's provider tokens a pool's pushes go out with, as a value: no clock, no key.
///
/// One push tries a token that the provider hasn't taken yet. The others go with the one before while it is young enough, and wait otherwise.
/// As a rule the clock says which one is due. A provider whose clock differs refuses that one for a while, at the half hour or for good: then the
/// one before goes on, or its neighbour is tried.
struct TokenChoice {
  typealias Refusal = Authorisation.Refusal

  /// Seconds between a token's issue and now, in either direction, for which it is used: a minute less than the provider's hour.
  static let longestAge: Int64 = 59 * 60
  /// Seconds by which clocks differ without anything being wrong.
  static let tolerance: Int64 = 5 * 60
  /// Seconds until a token is tried again that the provider refused while it took the one before.
  static let rest = 5.0 * 60
  /// The same where it saw too many.
  static let longRest = 20.0 * 60

  /// What the provider takes.
  private(set) var taken: Int?
  /// What one push is to try. There is this one or the other, once the clock has been looked at.
  private(set) var trial: Int?
  /// The clock's own token whose neighbour has been tried: that is done once.
  private var refusedOwn: Int?
  /// Nothing else is put on trial until then.
  private var restsUntil = MonotonicTime(nanoseconds: .min)

  /// To be called now and then: the half hour ends, or somebody sets the clock.
  mutating func look(at now: MonotonicTime, wallClock: Int64) {
    if let taken, !Self.isUsable(taken, wallClock) { self.taken = nil }
    if let trial, !Self.isUsable(trial, wallClock) { self.trial = nil }
    if now < restsUntil, taken != nil || trial != nil { return }
    if let taken, Self.isDue(taken, wallClock) { return trial = nil }
    trial = ProviderToken.number(at: wallClock)
  }

  /// The provider has taken a push that went out with the token.
  mutating func took(_ number: Int) {
    guard number == trial else { return }
    taken = number
    trial = nil
  }

  /// The provider has refused a push for the token that it went out with. True when there is another one for it.
  ///
  /// - Parameter isTrusted: the provider takes others with it, who are to go on with it until there is another one.
  mutating func refused(
    _ number: Int, _ refusal: Refusal, isTrusted: Bool = false, at now: MonotonicTime, wallClock: Int64
  ) -> Bool {
    if number == trial, taken != nil {
      trial = nil
      restsUntil = now.advanced(bySeconds: refusal == .tooMany ? Self.longRest : Self.rest)
      return true
    }
    if number == taken { return refusedTaken(number, refusal, isTrusted: isTrusted, at: now, wallClock) }
    guard number == trial else { return true }
    let own = ProviderToken.number(at: wallClock)
    guard number == own else {
      // The neighbour is no better, or the clock has been set.
      trial = own
      return refusedOwn != own
    }
    return tryNeighbour(of: own, refusal, at: now, wallClock)
  }

  private mutating func refusedTaken(
    _ number: Int, _ refusal: Refusal, isTrusted: Bool, at now: MonotonicTime, _ wallClock: Int64
  ) -> Bool {
    if refusal == .tooMany {
      restsUntil = now.advanced(bySeconds: Self.longRest)
      return false
    }
    let own = ProviderToken.number(at: wallClock)
    if trial == nil {
      if number != own, refusedOwn != own {
        trial = own
      } else if refusal != .expired || !tryNeighbour(of: own, refusal, at: now, wallClock) {
        if refusal == .invalid { (taken, trial) = (nil, own) }
        return false
      }
    }
    if !isTrusted { taken = nil }
    return true
  }

  private mutating func tryNeighbour(of own: Int, _ refusal: Refusal, at now: MonotonicTime, _ wallClock: Int64) -> Bool {
    guard refusedOwn != own else { return false }
    let isNew = wallClock / 1000 - ProviderToken.issuedAt(own) < Self.tolerance
    // Called expired, it is the provider's clock that is ahead.
    let neighbour = refusal == .expired ? own + 1 : own - 1
    guard refusal != .invalid || isNew, Self.isUsable(neighbour, wallClock) else { return false }
    trial = neighbour
    refusedOwn = own
    restsUntil = now.advanced(bySeconds: refusal == .tooMany ? Self.longRest : Self.rest)
    return true
  }

  private static func isUsable(_ number: Int, _ wallClock: Int64) -> Bool {
    abs(wallClock / 1000 - ProviderToken.issuedAt(number)) < longestAge
  }

  /// It is the clock's own, or the clock was set back a little.
  private static func isDue(_ number: Int, _ wallClock: Int64) -> Bool {
    let age = wallClock / 1000 - ProviderToken.issuedAt(number)
    return age < ProviderToken.period && age >= -tolerance
  }
}
