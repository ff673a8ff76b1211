import Wire

/// The authorisation of a push: a token, or only the connection's certificate.
struct Authorisation {
  enum Refusal {
    /// The provider says that it is too old.
    case expired
    /// Perhaps because of its time: it may be in the provider's future.
    case invalid
    /// The credential's authorisations change too often.
    case tooMany
  }

  let generation: Int
  /// The number of pushes that may use it now.
  var allowance = Int.max
}

/// Fetches authorisations over the network.
protocol AuthorisationSource: AnyObject {
  var isRefused: Bool { get }
  /// Nil if there is an authorisation, or no error is known.
  func state(at now: MonotonicTime) -> PoolState?
  var deadline: MonotonicTime { get }
  func deadlineReached(at now: MonotonicTime)
  func stop()
}
