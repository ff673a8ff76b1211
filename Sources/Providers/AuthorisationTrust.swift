/// What the provider's answers say of the authorisations that pushes went out with, by their generations.
///
/// One that it takes from others isn't to blame for a single refusal; one that nobody has been taken with is, at the second refusal.
struct AuthorisationTrust {
  /// So many refusals of an authorisation in a row are no longer the trouble of single requests.
  static let refusalTrip = 20

  /// The newest one of the present credential that the provider has taken, and how often it has refused any since.
  private var taken = -1
  private var refusals = 0
  /// How many pushes in a row have asked for another one.
  private var renewals = 0
  /// The slot of the push that tries an authorisation before others go out with it; negative while none does.
  var trialSlot = -1

  /// The provider has taken a push with the present credential.
  var hasBeenTaken: Bool { taken >= 0 }

  /// The provider takes others with it.
  func isTrusted(_ generation: Int) -> Bool { taken >= generation && renewals < Self.refusalTrip }

  /// Few enough refusals to be the trouble of one push.
  var isTakenFromOthers: Bool { hasBeenTaken && refusals < Self.refusalTrip }

  /// Whether the refusal of one that there is no other one for is the trouble of its push.
  func blamesPush(_ generation: Int) -> Bool { refusals < (taken >= generation ? Self.refusalTrip : 1) }

  mutating func refused() { refusals += 1 }
  mutating func renewed() { renewals += 1 }

  /// - Parameter generation: nil for one of a credential that has been replaced.
  mutating func took(_ generation: Int?) {
    if let generation { taken = max(taken, generation) }
    refusals = 0
    renewals = 0
  }
}
