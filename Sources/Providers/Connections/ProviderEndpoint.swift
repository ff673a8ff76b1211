/// Where connections to a provider go with one credential, and what is particular to them.
struct ProviderEndpoint {
  let target: DialTarget
  /// Whether a new connection carries one request at a time until the provider has answered one.
  var probesFirst = false
  /// Names of the answers' headers that are kept beside those that every pool needs.
  var keptHeaders: [String] = []
  /// Whether headers of successes are kept.
  var keepsHeadersOfSuccess = false
}
