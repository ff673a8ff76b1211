import HTTP2
import Wire

extension SingleRequest {
  /// Starts a request to a token endpoint.
  /// - Parameters:
  ///   - timeout: seconds for an answer, and for a connection.
  ///   - completion: never called from within this call.
  static func accessToken(
    _ credentials: FCMCredentials, _ time: Turn, _ dialer: any Dialer, timeout: Double,
    completion: @escaping (AccessTokenAnswer) -> Void
  ) throws -> SingleRequest {
    let target = credentials.tokenTarget
    let template = HeaderTemplate(
      constant: [
        (":method", "POST"), (":scheme", "https"), (":authority", target.authority), (":path", credentials.tokenPath),
        ("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json"),
      ], variable: ["content-length"])
    let body = try credentials.account.tokenRequest(wallClock: time.wallClock)
    var values = HeaderValues()
    values.append(decimal: Int64(body.count))
    let request = SingleRequest(template, values, body: body, timeout: timeout) { end in
      switch end {
      case .answered(let response): completion(AccessTokenAnswer(status: response.status, body: response.body))
      case .timedOut, .failed: completion(.unanswered("the token endpoint gave no answer"))
      case .ended(let reason): completion(.unanswered("token endpoint: \(reason)"))
      }
    }
    request.start(time, dialer, target)
    return request
  }
}
