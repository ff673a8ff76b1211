import HTTP2

/// A push that reaches nobody: what the provider says to it is what is wanted.
struct ProbeRequest {
  let template: HeaderTemplate
  var values: HeaderValues
  let body: [UInt8]
}

/// What a ``Canary`` asks a provider.
enum ProbeQuestion {
  /// Whether it answers.
  case answers
  /// Whether it takes the credential, for the application's own topic.
  case takesCredential(topic: [UInt8])
}
