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
        (":path", "/v1/projects/\(Self.escaped(credentials.account.project))/messages:send"),
        ("content-type", "application/json"),
      ], variable: ["authorization"])
  }

  mutating func submit(_ payload: [UInt8], authorization: [UInt8], to session: ClientSession, tag: Int) {
    values.append(authorization)
    session.submit(template, body: payload, tag: tag, &values)
  }

  /// Percent-encodes a project id as a path segment (RFC 3986 §3.3).
  private static func escaped(_ project: String) -> String {
    var out = ""
    for byte in project.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
        out.unicodeScalars.append(Unicode.Scalar(byte))
      default: out += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return out
  }
}
