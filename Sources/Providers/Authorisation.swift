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
