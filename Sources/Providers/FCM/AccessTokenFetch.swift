import HTTP2
import Wire

/// One request to a token endpoint.
final class AccessTokenFetch {
  private let request: SingleRequest

  init(
    template: HeaderTemplate, values: HeaderValues, body: [UInt8], timeout: Double,
    completion: @escaping (AccessTokenAnswer) -> Void
  ) {
    request = SingleRequest(template, values, body: body, timeout: timeout) { end in
      switch end {
      case .answered(let response): completion(AccessTokenAnswer(status: response.status, body: response.body))
      case .timedOut, .failed: completion(.unanswered("the token endpoint gave no answer"))
      case .ended(let reason): completion(.unanswered("token endpoint: \(reason)"))
      }
    }
  }

  func start(_ time: Turn, _ dialer: any Dialer, _ target: DialTarget) { request.start(time, dialer, target) }

  /// Nobody waits for the answer any more.
  func abandon() { request.abandon() }
}
