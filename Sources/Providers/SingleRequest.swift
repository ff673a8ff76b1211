import HTTP2
import Wire

/// One request on its own connection. It is sent once, whatever the result.
final class SingleRequest: ClientSessionHandler {
  enum End {
    case answered(Response)
    /// No answer in time, or no connection or stream in time.
    case timedOut(isSubmitted: Bool)
    /// The connection was lost, or the server accepted no more requests.
    case failed(RequestFailure)
    /// There was no connection, or it ended without an open request.
    case ended(TransportEnd)
  }

  private let session: ClientSession
  private let template: HeaderTemplate
  private var values: HeaderValues
  private let body: [UInt8]
  private let timeout: Double
  private var transport: (any Transport)?
  private var isSubmitted = false
  private var completion: ((End) -> Void)?

  /// - Parameters:
  ///   - timeout: seconds for an answer, and for a connection.
  ///   - completion: called once, unless the request is abandoned.
  init(
    _ template: HeaderTemplate, _ values: HeaderValues, body: [UInt8], timeout: Double,
    configure: (inout ClientConfiguration) -> Void = { _ in }, completion: @escaping (End) -> Void
  ) {
    self.template = template
    self.values = values
    self.body = body
    self.timeout = timeout
    self.completion = completion
    var configuration = ClientConfiguration()
    configuration.requestTimeout = timeout
    configuration.ownStreamLimit = 1
    configure(&configuration)
    session = ClientSession(configuration: configuration)
    session.handler = self
  }

  func start(_ time: Turn, _ dialer: any Dialer, _ target: DialTarget) {
    transport = dialer.dial(session, to: target)
    // The session limits only the time of an open stream; a server may never allow one.
    time.schedule(at: time.now.advanced(bySeconds: 2 * timeout)) { [weak self] in
      guard let self else { return }
      complete(.timedOut(isSubmitted: isSubmitted))
    }
  }

  func abandon() {
    guard completion != nil else { return }
    completion = nil
    transport?.close()
  }

  private func submitOnce() {
    guard !isSubmitted, session.availableStreams > 0 else { return }
    isSubmitted = true
    session.submit(template, body: body, tag: 0, &values)
  }

  private func complete(_ end: End) {
    guard let completion else { return }
    self.completion = nil
    session.drain()
    completion(end)
  }

  func sessionReady() { submitOnce() }
  func answersReady(in session: ClientSession) {
    while let (_, response) = session.nextAnswer() { complete(.answered(response)) }
  }
  func failed(_ tag: Int, _ failure: RequestFailure) { complete(.failed(failure)) }
  func streamsAvailable() { submitOnce() }
  func goAwayReceived(_ goAway: GoAway) {}
  func sessionEnded(_ reason: TransportEnd) { complete(.ended(reason)) }
}
