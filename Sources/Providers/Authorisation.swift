import Wire

/// What a push goes out with: a token, or nothing but the connection's certificate.
struct Authorisation {
  /// Why a provider refuses one.
  enum Refusal {
    /// It is too old, says the provider.
    case expired
    /// Its time may be the reason: it may lie in the provider's future.
    case invalid
    /// The credential's authorisations change too often.
    case tooMany
  }

  let generation: Int
  /// How many pushes may go out with it now.
  var allowance = Int.max
}

/// An authorisation that comes over the network.
protocol AuthorisationSource: AnyObject {
  /// The source refuses the credential.
  var isRefused: Bool { get }
  /// nil while there is an authorisation, or nothing is known to be wrong.
  func state(at now: MonotonicTime) -> PoolState?
  var deadline: MonotonicTime { get }
  func deadlineReached(at now: MonotonicTime)
  func stop()
}
