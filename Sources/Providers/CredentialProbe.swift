import HTTP2
import PushCore
import Wire

/// One push that reaches nobody, by a credential, on a connection of its own: what the provider says to it tells of key, topic and project.
/// Whatever the answer, it is not sent again.
public enum CredentialProbe {
  public enum Outcome: Sendable {
    /// What the answer means, and the provider's clock in unix milliseconds where it says it.
    case answered(ReplyMeaning, clock: Int64?)
    /// The token endpoint refuses the account, in its words.
    case accountRefused(String)
    /// Nobody has answered.
    case unreachable(String)
  }

  /// Seconds for an answer, and for a connection.
  private static let timeout = 10.0
  /// A token as APNs issues them, for no device: of one that is none, APNs might say so before it looks at the topic.
  package static let apnsDevice = String(repeating: "0123456789abcdef", count: 4)
  package static let fcmDevice = "pushfleet-doctor"

  /// - Returns: what has to be kept until `completion` is called.
  /// - Throws: when the key can't sign.
  public static func apns(
    _ credentials: APNsCredentials, topic: String, _ time: Turn, _ dialer: any Dialer,
    completion: @escaping (Outcome) -> Void
  ) throws -> AnyObject {
    var authorization: [UInt8]?
    if case .token(let credential) = credentials.authentication {
      authorization = try credential.token(ProviderToken.number(at: time.wallClock)).authorization
    }
    let push = request(
      .apns(credentials.target, topic: topic, authorization: authorization, device: apnsDevice),
      interpret: { APNsReply.interpret(status: $0.status, body: $0.body) }, completion)
    push.start(time, dialer, credentials.target)
    return push
  }

  /// An access token, and with it a message that FCM only validates.
  /// - Returns: what has to be kept until `completion` is called.
  /// - Throws: when the key can't sign.
  public static func fcm(
    _ credentials: FCMCredentials, _ time: Turn, _ dialer: any Dialer, completion: @escaping (Outcome) -> Void
  ) throws -> AnyObject {
    let target = credentials.tokenTarget
    let template = HeaderTemplate(
      constant: [
        (":method", "POST"), (":scheme", "https"), (":authority", target.authority), (":path", credentials.tokenPath),
        ("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json"),
      ], variable: ["content-length"])
    let request = try credentials.account.tokenRequest(wallClock: time.wallClock)
    var values = HeaderValues()
    values.append(Array("\(request.count)".utf8))
    let steps = Steps()
    let fetch = AccessTokenFetch(template: template, values: values, body: request, timeout: timeout) { answer in
      switch answer {
      case .refused(let word): completion(.accountRefused(word))
      case .failed(let reason), .unanswered(let reason): completion(.unreachable(reason))
      case .token(let token, _): steps.second = validate(token, credentials, time, dialer, completion)
      }
    }
    steps.first = fetch
    fetch.start(time, dialer, target)
    return steps
  }

  private final class Steps {
    var first: AnyObject?
    var second: AnyObject?
  }

  private static func validate(
    _ token: [UInt8], _ credentials: FCMCredentials, _ time: Turn, _ dialer: any Dialer,
    _ completion: @escaping (Outcome) -> Void
  ) -> AnyObject {
    let template = FCMHeaders(authority: credentials.target.authority, project: credentials.account.project).template
    let push = request(
      .fcm(template, authorization: Array("Bearer ".utf8) + token, device: fcmDevice),
      interpret: { FCMReply.interpret(status: $0.status, body: $0.body) }, completion)
    push.start(time, dialer, credentials.target)
    return push
  }

  private static func request(
    _ push: ProbeRequest, interpret: @escaping (Response) -> ReplyMeaning,
    _ completion: @escaping (Outcome) -> Void
  ) -> SingleRequest {
    SingleRequest(
      push.template, push.values, body: push.body, timeout: timeout, configure: { $0.keptResponseHeaders = ["date"] },
      completion: { end in
        switch end {
        case .answered(let response):
          let clock = response.header(0).flatMap { HTTPDate.seconds($0[...]) }.map { $0 * 1_000 }
          completion(.answered(interpret(response), clock: clock))
        case .timedOut: completion(.unreachable("no answer in time"))
        case .failed: completion(.unreachable("the connection was lost before the answer"))
        case .ended(let reason): completion(.unreachable("\(reason)"))
        }
      })
  }
}
