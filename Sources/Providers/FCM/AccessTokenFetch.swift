import HTTP2
import Wire

/// One request to a token endpoint on a connection of its own.
final class AccessTokenFetch: ClientSessionHandler {
  private let session: ClientSession
  private let template: HeaderTemplate
  private var values: HeaderValues
  private let body: [UInt8]
  private let timeout: Double
  private var transport: (any Transport)?
  private var isSubmitted = false
  private var completion: ((AccessTokenAnswer) -> Void)?

  init(
    template: HeaderTemplate, values: HeaderValues, body: [UInt8], timeout: Double,
    completion: @escaping (AccessTokenAnswer) -> Void
  ) {
    self.template = template
    self.values = values
    self.body = body
    self.completion = completion
    self.timeout = timeout
    var configuration = ClientConfiguration()
    configuration.requestTimeout = timeout
    configuration.ownStreamLimit = 1
    session = ClientSession(configuration: configuration)
    session.handler = self
  }

  func start(_ time: Turn, _ dialer: any Dialer, _ target: DialTarget) {
    transport = dialer.dial(session, to: target)
    // The session times an open stream only; a server that never allows one would be waited for without end.
    time.schedule(at: time.now.advanced(bySeconds: 2 * timeout)) { [weak self] in
      self?.complete(.unanswered("the token endpoint gave no answer"))
    }
  }

  /// Nobody waits for the answer any more.
  func abandon() {
    guard completion != nil else { return }
    completion = nil
    transport?.close()
  }

  /// A server may allow no stream at first.
  private func submitOnce() {
    guard !isSubmitted, session.availableStreams > 0 else { return }
    isSubmitted = true
    session.submit(template, body: body, tag: 0, &values)
  }

  private func complete(_ answer: AccessTokenAnswer) {
    guard let completion else { return }
    self.completion = nil
    session.drain()
    completion(answer)
  }

  func sessionReady() { submitOnce() }
  func answersReady(in session: ClientSession) {
    while let (_, response) = session.nextAnswer() {
      complete(AccessTokenAnswer(status: response.status, body: response.body))
    }
  }
  func failed(_ tag: Int, _ failure: RequestFailure) { complete(.unanswered("the token endpoint gave no answer")) }
  func streamsAvailable() { submitOnce() }
  func goAwayReceived(_ goAway: GoAway) {}
  func sessionEnded(_ reason: TransportEnd) { complete(.unanswered("token endpoint: \(reason)")) }
}
