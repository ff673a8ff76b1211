import HTTP2
import PushCore
import Wire

/// One request to make, read, delete or list broadcast channels, on a connection of its own (Apple, "Sending channel management requests to
/// APNs"). It is sent once: a channel that was made although no answer came would be made twice.
public final class ChannelRequest: ClientSessionHandler {
  public enum Operation: Sendable, Equatable {
    /// `storesLatest`: the latest broadcast is kept for devices that are away.
    case create(storesLatest: Bool)
    case read(channel: [UInt8])
    case delete(channel: [UInt8])
    case list
  }

  public enum Outcome: Sendable, Equatable {
    /// The status, the channel's id where one was made, and the body.
    case answered(Int, channel: [UInt8]?, body: [UInt8])
    /// It was not processed.
    case notSent(String)
    /// It may have been processed.
    case unknown(String)
  }

  /// Seconds for an answer, and for a connection.
  private static let timeout = 20.0

  private let session: ClientSession
  private let template: HeaderTemplate
  private var values = HeaderValues()
  private let body: [UInt8]
  private let target: DialTarget
  private var transport: (any Transport)?
  private var isSubmitted = false
  private var completion: ((Outcome) -> Void)?

  /// - Parameters:
  ///   - credentials: with the management host as their target.
  ///   - bundleID: without a push type's suffix.
  ///   - wallClock: Unix milliseconds.
  /// - Throws: when the key can't sign.
  public init(
    _ operation: Operation, bundleID: String, credentials: APNsCredentials, wallClock: Int64,
    completion: @escaping (Outcome) -> Void
  ) throws {
    target = credentials.target
    self.completion = completion
    let (method, collection, channel, body) = Self.parts(operation)
    self.body = body
    template = HeaderTemplate(
      constant: [
        (":method", method), (":scheme", "https"), (":authority", target.authority),
        (":path", "/1/apps/\(bundleID)/\(collection)"),
      ], variable: ["authorization", "apns-channel-id"], unindexed: ["authorization", "apns-channel-id"])
    if case .token(let credential) = credentials.authentication {
      values.append(try credential.token(ProviderToken.number(at: wallClock)).authorization)
    } else {
      values.appendAbsent()
    }
    if let channel { values.append(channel) } else { values.appendAbsent() }
    var configuration = ClientConfiguration()
    configuration.requestTimeout = Self.timeout
    configuration.ownStreamLimit = 1
    configuration.keptResponseHeaders = ["apns-channel-id"]
    configuration.maxResponseBody = Self.longestBody
    session = ClientSession(configuration: configuration)
    session.handler = self
  }

  /// Of a list of ten thousand channels.
  private static let longestBody = 4 << 20

  private static func parts(_ operation: Operation) -> (method: String, collection: String, channel: [UInt8]?, body: [UInt8]) {
    switch operation {
    case .create(let storesLatest):
      var body = JSONObjectWriter()
      body.set("message-storage-policy", storesLatest ? 1 : 0)
      body.set("push-type", "LiveActivity")
      return ("POST", "channels", nil, body.closed())
    case .read(let channel): return ("GET", "channels", channel, [])
    case .delete(let channel): return ("DELETE", "channels", channel, [])
    case .list: return ("GET", "all-channels", nil, [])
    }
  }

  public func start(_ time: Turn, _ dialer: any Dialer) {
    transport = dialer.dial(session, to: target)
    // The session times an open stream only.
    time.schedule(at: time.now.advanced(bySeconds: 2 * Self.timeout)) { [weak self] in
      self?.complete(self?.isSubmitted == true ? .unknown("no answer in time") : .notSent("no connection in time"))
    }
  }

  private func submitOnce() {
    guard !isSubmitted, session.availableStreams > 0 else { return }
    isSubmitted = true
    session.submit(template, body: body, tag: 0, &values)
  }

  private func complete(_ outcome: Outcome) {
    guard let completion else { return }
    self.completion = nil
    session.drain()
    completion(outcome)
  }

  public func sessionReady() { submitOnce() }
  public func answersReady(in session: ClientSession) {
    while let (_, response) = session.nextAnswer() {
      complete(.answered(response.status, channel: response.header(0), body: response.body))
    }
  }
  public func failed(_ tag: Int, _ failure: RequestFailure) {
    switch failure {
    case .notProcessed: complete(.notSent("the server did not take the request"))
    case .unknown: complete(.unknown("the connection was lost before the answer"))
    }
  }
  public func streamsAvailable() { submitOnce() }
  public func goAwayReceived(_ goAway: GoAway) {}
  public func sessionEnded(_ reason: TransportEnd) { complete(.notSent("\(reason)")) }
}
