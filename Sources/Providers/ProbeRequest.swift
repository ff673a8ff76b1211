import HTTP2

/// A push to no device, sent only for its answer.
struct ProbeRequest {
  let template: HeaderTemplate
  var values: HeaderValues
  let body: [UInt8]
}

enum ProbeQuestion {
  case answers
  /// Does it accept the credential for the application's own topic?
  case takesCredential(topic: [UInt8])
}
