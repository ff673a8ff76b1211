/// Decides from the provider's answers whether an authorisation, identified by its generation, is to blame for a refusal. If
/// the provider accepts other pushes with it, a single refusal doesn't count. If it was never accepted, the second does.
struct AuthorisationTrust {
  /// From this number of refusals in a row, the authorisation is to blame.
  static let refusalTrip = 20

  /// The newest accepted generation of the current credential, and the number of refusals since the last acceptance.
  private var taken = -1
  private var refusals = 0
  /// The number of pushes in a row that asked for another authorisation.
  private var renewals = 0
  /// The slot of the push that tries an authorisation; negative if there is none.
  var trialSlot = -1

  /// True if the provider has accepted a push with the current credential.
  var hasBeenTaken: Bool { taken >= 0 }

  func isTrusted(_ generation: Int) -> Bool { taken >= generation && renewals < Self.refusalTrip }

  /// True if the refusals are few enough to concern single pushes.
  var isTakenFromOthers: Bool { hasBeenTaken && refusals < Self.refusalTrip }

  /// True if a refusal without an alternative authorisation concerns only its push.
  /// - Parameter isAboutToken: the refusal may mean that the device's token belongs to another credential.
  func blamesPush(_ generation: Int, isAboutToken: Bool = false) -> Bool {
    refusals < (taken >= generation || isAboutToken ? Self.refusalTrip : 1)
  }

  mutating func refused() { refusals += 1 }
  mutating func renewed() { renewals += 1 }

  /// - Parameter generation: nil for a credential that has been replaced.
  mutating func took(_ generation: Int?) {
    if let generation { taken = max(taken, generation) }
    refusals = 0
    renewals = 0
  }
}
