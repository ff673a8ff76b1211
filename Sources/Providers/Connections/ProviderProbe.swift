import HTTP2
import Wire

/// Asks a silent provider whether it answers again, or a refusing provider whether it accepts the credential. Sends one probe
/// at a time to no device. Uses its own connection, because the pool's connections may be dead or have no free stream.
package final class ProviderProbe: ClientSessionHandler {
  /// Seconds between two probes, and for an answer: a slower answer counts as silence.
  private static let interval = 2.0

  private let time: Turn
  private let dialer: any Dialer
  private let target: DialTarget
  private let allowsHTTP1: Bool
  private let request: () -> ProbeRequest?
  private let answered: (_ response: Response, _ askedAt: MonotonicTime) -> Bool
  private var session: ClientSession?
  private var transport: (any Transport)?
  private var askedAt = MonotonicTime(nanoseconds: 0)
  private var isPausing = false
  private var isOver = false

  /// - Parameters:
  ///   - request: nil if there is no probe to send yet.
  ///   - answered: returns false to probe again. Never called from within `init` or `stop`.
  init(
    _ time: Turn, _ dialer: any Dialer, _ endpoint: ProviderEndpoint, request: @escaping () -> ProbeRequest?,
    answered: @escaping (_ response: Response, _ askedAt: MonotonicTime) -> Bool
  ) {
    self.time = time
    self.dialer = dialer
    var target = endpoint.target
    target.options.connectTimeout = min(target.options.connectTimeout, 2 * Self.interval)
    self.target = target
    allowsHTTP1 = endpoint.allowsHTTP1
    self.request = request
    self.answered = answered
    connect()
  }

  deinit { stop() }

  func stop() {
    isOver = true
    transport?.close()
    transport = nil
  }

  private func connect() {
    var configuration = ClientConfiguration()
    configuration.ownStreamLimit = 1
    configuration.requestTimeout = Self.interval
    configuration.pingTimeout = Self.interval
    configuration.allowsHTTP1 = allowsHTTP1
    let session = ClientSession(configuration: configuration, handler: self)
    self.session = session
    transport = dialer.dial(session, to: target)
  }

  private func ask() {
    guard !isOver, !isPausing, let session, session.availableStreams > 0 else { return }
    guard var request = request() else { return pause { $0.ask() } }
    askedAt = time.now
    session.submit(request.template, body: request.body, tag: 0, &request.values)
  }

  private func pause(then action: @escaping (ProviderProbe) -> Void) {
    isPausing = true
    time.schedule(after: Self.interval) { [weak self] in
      guard let self, !isOver else { return }
      isPausing = false
      action(self)
    }
  }

  // MARK: Session events

  package func sessionReady() {}
  package func streamsAvailable() { ask() }

  package func answersReady(in session: ClientSession) {
    while let (_, response) = session.nextAnswer() {
      guard !isOver else { return }
      guard answered(response, askedAt) else { return pause { $0.ask() } }
      isOver = true
    }
  }

  package func failed(_ tag: Int, _ failure: RequestFailure) {
    if failure != .unknown(.timedOut), !isOver, !isPausing { pause { $0.ask() } }
  }

  package func goAwayReceived(_ goAway: GoAway) {}

  package func sessionEnded(_ reason: TransportEnd) {
    session = nil
    transport = nil
    if !isOver { pause { $0.connect() } }
  }
}
