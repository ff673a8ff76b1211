/// The server for one credential and the properties of its connections.
struct ProviderEndpoint {
  let target: DialTarget
  /// True if a new connection carries one request at a time until the provider has answered one.
  var probesFirst = false
  /// Names of additional answer headers to keep.
  var keptHeaders: [String] = []
  var keepsHeadersOfSuccess = false
  /// The server may have no HTTP/2.
  var allowsHTTP1 = false
}
