import HTTP2

/// A push that reaches nobody: what the provider says to it is what is wanted.
struct ProbeRequest {
  let template: HeaderTemplate
  var values: HeaderValues
  let body: [UInt8]
}
