import HTTP2
import PushCore
import Wire

extension ProviderProbe {
  /// Replaces a device's token. Not even a simulator accepts it.
  package static let fcmDevice = "not a device"
}

extension ProbeRequest {
  /// A message that FCM only validates, to the token of no device.
  static func fcm(_ headers: HeaderTemplate, device: String) -> ProbeRequest {
    let body = #"{"validate_only":true,"message":{"token":"\#(device)","data":{"probe":"1"}}}"#
    return ProbeRequest(template: headers, values: HeaderValues(), body: Array(body.utf8))
  }
}

extension CredentialProbe {
  package static let fcmDevice = "pushfleet-doctor"

  /// Fetches an access token and sends a message that FCM only validates.
  /// - Returns: an object to keep until `completion` is called.
  /// - Throws: if the key can't sign.
  public static func fcm(
    _ credentials: FCMCredentials, _ time: Turn, _ dialer: any Dialer, completion: @escaping (Outcome) -> Void
  ) throws -> AnyObject {
    let steps = Steps()
    let fetch = try SingleRequest.accessToken(credentials, time, dialer, timeout: timeout) { answer in
      switch answer {
      case .refused(let word): completion(.accountRefused(word))
      case .failed(let reason), .unanswered(let reason): completion(.unreachable(reason))
      case .token(let token, _):
        let push = send(
          .fcm(credentials.headers(token), device: fcmDevice), to: credentials.target, time, dialer,
          interpret: { FCMReply.interpret(status: $0.status, body: $0.body) }, completion)
        steps.kept.append(push)
      }
    }
    steps.kept.append(fetch)
    return steps
  }

  private final class Steps { var kept: [AnyObject] = [] }
}
