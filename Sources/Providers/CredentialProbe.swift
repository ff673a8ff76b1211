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
  static let timeout = 10.0

  /// - Returns: what has to be kept until `completion` is called.
  static func send(
    _ push: ProbeRequest, to target: DialTarget, _ time: Turn, _ dialer: any Dialer,
    interpret: @escaping (Response) -> ReplyMeaning, _ completion: @escaping (Outcome) -> Void
  ) -> AnyObject {
    let request = SingleRequest(
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
    request.start(time, dialer, target)
    return request
  }
}
