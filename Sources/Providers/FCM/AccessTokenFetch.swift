import HTTP2
import Wire

/// One request to a token endpoint on a connection of its own.
final class AccessTokenFetch: ClientSessionHandler {
  private let session: ClientSession
  private let template: HeaderTemplate
  private let values: HeaderValues
  private let body: [UInt8]
  private var transport: (any Transport)?
  private var completion: ((AccessTokenAnswer) -> Void)?

  init(
    template: HeaderTemplate, values: HeaderValues, body: [UInt8], timeout: Double,
    completion: @escaping (AccessTokenAnswer) -> Void
  ) {
    self.template = template
    self.values = values
    self.body = body
    self.completion = completion
    var configuration = ClientConfiguration()
    configuration.requestTimeout = timeout
    configuration.ownStreamLimit = 1
    session = ClientSession(configuration: configuration)
    session.handler = self
  }

  func start(_ dialer: any Dialer, _ target: DialTarget) { transport = dialer.dial(session, to: target) }

  /// Nobody waits for the answer any more.
  func abandon() {
    completion = nil
    transport?.close()
  }

  private func complete(_ answer: AccessTokenAnswer) {
    guard let completion else { return }
    self.completion = nil
    session.drain()
    completion(answer)
  }

  func sessionReady() { session.submit(template, values, body: body, tag: 0) }
  func answered(_ tag: Int, _ response: Response) {
    complete(AccessTokenAnswer(status: response.status, body: response.body))
  }
  func failed(_ tag: Int, _ failure: RequestFailure) { complete(.failed("the token endpoint gave no answer")) }
  func streamsAvailable() {}
  func goAwayReceived(_ goAway: GoAway) {}
  func sessionEnded(_ reason: TransportEnd) { complete(.failed("token endpoint: \(reason)")) }
}
