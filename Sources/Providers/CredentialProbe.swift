import HTTP2
import PushCore
import Wire

/// Tests a credential with one push to no device on its own connection; never sends it again. The answer tells whether key,
/// topic and project work.
public enum CredentialProbe {
  public enum Outcome: Sendable {
    /// The meaning of the answer, and the provider's clock in Unix milliseconds if the answer has it.
    case answered(ReplyMeaning, clock: Int64?)
    /// The token endpoint refuses the account; its own words.
    case accountRefused(String)
    case unreachable(String)
  }

  /// Seconds for an answer, and for a connection.
  static let timeout = 10.0

  /// - Returns: an object to keep until `completion` is called.
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
        case .timedOut, .failed(.unknown(.timedOut)): completion(.unreachable("no answer in time"))
        case .failed: completion(.unreachable("the connection was lost before the answer"))
        case .ended(let reason): completion(.unreachable("\(reason)"))
        }
      })
    request.start(time, dialer, target)
    return request
  }
}
