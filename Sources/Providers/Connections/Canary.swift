import HTTP2
import Wire

/// Asks a provider that has fallen silent whether it answers again, or one that has refused a credential whether it takes it: by requests that
/// reach nobody, one at a time, on a connection of their own, since those that pushes went out on may be dead, or have no stream left.
package final class Canary: ClientSessionHandler {
  /// Seconds between two requests, and so for an answer: one that takes longer is no better than silence.
  private static let interval = 2.0

  private let time: Turn
  private let dialer: any Dialer
  private let target: DialTarget
  private let request: () -> ProbeRequest?
  private let answered: (_ response: Response, _ askedAt: MonotonicTime) -> Bool
  private var session: ClientSession?
  private var transport: (any Transport)?
  private var askedAt = MonotonicTime(nanoseconds: 0)
  /// Nothing is asked before a pause is over.
  private var isPausing = false
  private var isOver = false

  /// - Parameters:
  ///   - request: nil while there is none to be made.
  ///   - answered: says whether the answer was what is wanted; if not, it is asked again. Never called from within `init` or `stop`.
  init(
    _ time: Turn, _ dialer: any Dialer, _ target: DialTarget, request: @escaping () -> ProbeRequest?,
    answered: @escaping (_ response: Response, _ askedAt: MonotonicTime) -> Bool
  ) {
    self.time = time
    self.dialer = dialer
    var target = target
    target.timeout = min(target.timeout, 2 * Self.interval)
    self.target = target
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

  private func pause(then action: @escaping (Canary) -> Void) {
    isPausing = true
    time.schedule(after: Self.interval) { [weak self] in
      guard let self, !isOver else { return }
      isPausing = false
      action(self)
    }
  }

  // MARK: What the connection says

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
