import HTTP2
import PushCore

/// The header block of `POST /v1/projects/<project>/messages:send` (FCM HTTP v1 API). The access token changes only
/// hourly, so it may enter the compression table.
struct FCMHeaders {
  let template: HeaderTemplate
  private var values = HeaderValues()

  init(_ credentials: FCMCredentials) {
    template = HeaderTemplate(
      constant: [
        (":method", "POST"), (":scheme", "https"), (":authority", credentials.target.authority),
        (":path", "/v1/projects/\(HTTPFetch.encoded(credentials.account.project))/messages:send"),
        ("content-type", "application/json"),
      ], variable: ["authorization"])
  }

  mutating func submit(_ payload: [UInt8], authorization: [UInt8], to session: ClientSession, tag: Int) {
    values.append(authorization)
    session.submit(template, body: payload, tag: tag, &values)
  }
}
