import Wire

/// Chooses which of a key's provider tokens a pool uses. A pure value without clock and key.
///
/// One push tries a token that the provider hasn't accepted yet. The others use the previous token while it is young enough;
/// otherwise they wait. Usually the clock determines the token. If the provider's clock differs, the provider may refuse this
/// token around the half hour, or always. Then the previous token stays in use, or a neighbouring token is tried.
struct TokenChoice {
  typealias Refusal = Authorisation.Refusal

  /// The largest difference in seconds between now and a token's issue: a minute less than the provider's hour.
  static let longestAge: Int64 = 59 * 60
  /// The tolerated difference between clocks in seconds.
  static let tolerance: Int64 = 5 * 60
  /// Seconds until a refused token is tried again, while the provider accepts the previous one.
  static let rest = 5.0 * 60
  /// The same if the provider saw too many tokens.
  static let longRest = 20.0 * 60

  private(set) var taken: Int?
  /// The token that one push is to try. After `look`, at least one of `taken` and `trial` is set.
  private(set) var trial: Int?
  /// The clock's own token after its neighbour was tried; prevents a second try.
  private var refusedOwn: Int?
  /// No other trial begins before this time.
  private var restsUntil = MonotonicTime(nanoseconds: .min)

  /// Call regularly: a half hour may have ended, or the clock may have been set.
  mutating func look(at now: MonotonicTime, wallClock: Int64) {
    if let taken, !Self.isUsable(taken, wallClock) { self.taken = nil }
    if let trial, !Self.isUsable(trial, wallClock) { self.trial = nil }
    if now < restsUntil, taken != nil || trial != nil { return }
    if let taken, Self.isDue(taken, wallClock) { return trial = nil }
    trial = ProviderToken.number(at: wallClock)
  }

  mutating func took(_ number: Int) {
    guard number == trial else { return }
    taken = number
    trial = nil
  }

  /// - Parameter isTrusted: the provider accepts other pushes with the token; they use it until there is another.
  /// - Returns: true if there is another token for the push.
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
      // The neighbour is refused too, or the clock has been set.
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
    // If the provider calls the token expired, its clock is ahead.
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

  /// True for the clock's own token, also if the clock was set back a little.
  private static func isDue(_ number: Int, _ wallClock: Int64) -> Bool {
    let age = wallClock / 1000 - ProviderToken.issuedAt(number)
    return age < ProviderToken.period && age >= -tolerance
  }
}
