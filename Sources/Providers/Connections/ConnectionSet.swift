import HTTP2
import Wire

/// Makes, replaces and closes the connections to one provider. A connection is made on demand and kept while it works. After a
/// GOAWAY it is replaced at once. The backoff after failures is bounded; it resets once a connection has served a request. At
/// most `dialBurst` connections are made in `dialWindow` seconds: Apple treats frequent connecting as an attack.
final class ConnectionSet {
  static let dialBurst = 6
  static let dialWindow = 10.0
  /// A connection with this number of answers doesn't count against `dialBurst`; with HTTP/1.1, a connection with one. Some such
  /// servers close after each answer.
  static let dialWorth = 100
  /// Seconds after which an idle connection is closed, unless it is the only one.
  static let surplusIdle = 60.0

  weak var pool: ProviderPool?
  private let time: Turn
  let dialer: any Dialer
  private var configuration = ClientConfiguration()
  let maximum: Int
  /// Seconds after which the only connection is closed if it is idle.
  private let idle: Double
  private(set) var endpoint: ProviderEndpoint
  /// Counts the replacements of the credential.
  private(set) var epoch = 0
  /// Connecting and open connections.
  private(set) var live: [PooledConnection] = []
  private(set) var draining: [PooledConnection] = []
  private var isWanted = false
  private var isClosing = false
  private var backoff: Backoff
  private let reconnectsUnasked: Bool
  private(set) var retryAt: MonotonicTime?
  private(set) var lastFailure = ""
  private var dials: [MonotonicTime] = []
  private var idleCheckAt = MonotonicTime.distantFuture
  private var made = 0

  init(_ endpoint: ProviderEndpoint, _ settings: PoolSettings, time: Turn, dialer: any Dialer) {
    self.time = time
    self.dialer = dialer
    self.endpoint = endpoint
    maximum = settings.connections
    idle = settings.idle
    backoff = Backoff(base: 0.5, cap: settings.longestBackoff)
    reconnectsUnasked = settings.reconnectsUnasked
    configuration.requestTimeout = settings.requestTimeout
    configuration.pingInterval = 15
    configuration.keptResponseHeaders = ProviderPool.keptHeaders + endpoint.keptHeaders
    configuration.keepsHeadersOfSuccess = endpoint.keepsHeadersOfSuccess
    configuration.allowsHTTP1 = endpoint.allowsHTTP1
  }

  // MARK: Streams

  /// The number of requests that could be sent at once.
  var sendableStreams: Int {
    var sum = 0
    for connection in live where connection.phase == .open { sum += connection.session.sendableStreams }
    return sum
  }

  /// The session of the first open connection that could send at once. Otherwise one with a free stream, where the request
  /// waits for the provider's window. Taking the first lets surplus connections become idle.
  func pick() -> ClientSession? {
    for index in live.indices where live[index].phase == .open {
      let session = live[index].session
      if session.sendableStreams > 0 { return session }
    }
    return live.first { $0.phase == .open && $0.session.availableStreams > 0 }?.session
  }

  var isConnecting: Bool { live.contains { $0.phase == .connecting } }
  var isOpen: Bool { live.contains { $0.phase == .open } }

  // MARK: Demand

  /// Requests a stream: makes the first connection, or another if all are busy.
  func want() {
    isWanted = true
    guard !isClosing, retryAt == nil, !isConnecting, live.count < maximum, sendableStreams == 0 else { return }
    dial()
  }

  private func dial() {
    let now = time.now
    guard mayDial() else {
      return waitUntil(dials[0].advanced(bySeconds: Self.dialWindow), because: "too many recent connections", isFault: !isOpen)
    }
    dials.append(now)
    retryAt = nil
    made += 1
    let connection = PooledConnection(set: self, number: made, epoch: epoch, configuration: configuration, at: now)
    live.append(connection)
    connection.dial(dialer, endpoint.target)
  }

  private func mayDial() -> Bool {
    let now = time.now
    dials.removeAll { now.seconds(since: $0) >= Self.dialWindow }
    return dials.count < Self.dialBurst
  }

  /// - Parameter isFault: false if another connection is merely useful and nothing is wrong.
  private func waitUntil(_ deadline: MonotonicTime, because reason: String, isFault: Bool = true) {
    retryAt = deadline
    lastFailure = reason
    guard isFault else { return }
    pool?.observed(.backingOff(seconds: deadline.seconds(since: time.now), reason: reason))
    guard !isOpen else { return }
    if !reconnectsUnasked { isWanted = false }
    pool?.unreachable(isAskedAgain: !reconnectsUnasked)
  }

  // MARK: Replacing and ending

  /// - Parameter seconds: for an answer, on connections made from now on.
  func setRequestTimeout(_ seconds: Double) { configuration.requestTimeout = seconds }

  func replace(_ connection: PooledConnection) {
    guard live.contains(where: { $0 === connection }) else { return }
    retire(connection)
    connection.drain()
    if isWanted || connection.session.activeStreams > 0 { want() }
  }

  /// Replaces connections with requests unanswered since before `asked`: the answers may never come. Keeps connections with a
  /// free stream if no other can be made now.
  func replaceSilent(since asked: MonotonicTime) {
    let mayDial = mayDial()
    for connection in live where connection.phase == .open && connection.heardAt < asked {
      guard connection.session.activeStreams > 0 else { continue }
      if mayDial || connection.session.availableStreams == 0 { replace(connection) }
    }
  }

  /// New connections go to `endpoint` with its TLS identity; the old ones drain.
  func replaceAll(endpoint: ProviderEndpoint? = nil) {
    if let endpoint {
      self.endpoint = endpoint
      epoch += 1
      backoff.reset()
      retryAt = nil
    }
    for connection in live {
      retire(connection)
      connection.drain()
    }
  }

  func close() {
    isClosing = true
    replaceAll()
    for connection in draining { connection.close() }
    if draining.isEmpty { pool?.setClosed() }
  }

  private func retire(_ connection: PooledConnection) {
    guard let index = live.firstIndex(where: { $0 === connection }) else { return }
    live.remove(at: index)
    draining.append(connection)
    excuse(connection)
  }

  private func excuse(_ connection: PooledConnection) {
    let worth = connection.session.isHTTP1 ? 1 : Self.dialWorth
    if connection.answers >= worth { dials.removeAll { $0 == connection.startedAt } }
  }

  // MARK: Connection events

  func connectionReady(_ connection: PooledConnection) {
    guard connection.phase == .connecting else { return }
    connection.phase = .open
    isWanted = false
    idleCheckAt = min(idleCheckAt, time.now.advanced(bySeconds: live.count > 1 ? Self.surplusIdle / 2 : idle))
    pool?.observed(.connected)
    pool?.connectionOpened(connection)
  }

  /// A working provider answered a request on the connection, whatever the result.
  func served(_ connection: PooledConnection) {
    guard !connection.hasServed else { return }
    connection.hasServed = true
    backoff.reset()
  }

  func goAwayReceived(_ goAway: GoAway, on connection: PooledConnection) {
    pool?.observed(.goAway(reason: Self.words(of: goAway)))
    connectionDraining(connection)
  }

  func connectionDraining(_ connection: PooledConnection) {
    guard live.contains(where: { $0 === connection }) else { return }
    let wasBusy = connection.session.activeStreams > 0
    retire(connection)
    connection.phase = .draining
    guard !isClosing else { return }
    if connection.hasServed {
      if isWanted || wasBusy { want() }
    } else {
      failed("the server said goodbye before it served anything")
    }
  }

  func connectionEnded(_ connection: PooledConnection, _ reason: TransportEnd) {
    let wasLive = live.contains { $0 === connection }
    let wasConnecting = connection.phase == .connecting
    excuse(connection)
    // A connection that was never established counts for the backoff only.
    if wasConnecting { dials.removeAll { $0 == connection.startedAt } }
    live.removeAll { $0 === connection }
    draining.removeAll { $0 === connection }
    if isClosing {
      if live.isEmpty && draining.isEmpty { pool?.setClosed() }
      return
    }
    if !wasConnecting { pool?.observed(.disconnected(reason: "\(reason)")) }
    guard wasLive else { return }
    if connection.hasServed {
      if isWanted { want() }
    } else {
      failed("\(reason)")
    }
  }

  private func failed(_ reason: String) {
    waitUntil(time.now.advanced(bySeconds: backoff.next(using: &time.random)), because: reason)
  }

  // MARK: Time

  var deadline: MonotonicTime { min(retryAt ?? .distantFuture, idleCheckAt) }

  func deadlineReached(at now: MonotonicTime) {
    if let retryAt, now >= retryAt {
      self.retryAt = nil
      if isWanted { want() }
    }
    guard now >= idleCheckAt else { return }
    while let unused = live.last(where: { isIdle($0, for: live.count > 1 ? Self.surplusIdle : idle, at: now) }) {
      retire(unused)
      unused.drain()
    }
    idleCheckAt =
      live.count > 1
      ? now.advanced(bySeconds: Self.surplusIdle / 2)
      : live.first.map { max($0.heardAt, now.advanced(bySeconds: 60 - idle)).advanced(bySeconds: idle) }
        ?? .distantFuture
  }

  private func isIdle(_ connection: PooledConnection, for seconds: Double, at now: MonotonicTime) -> Bool {
    connection.phase == .open && connection.session.activeStreams == 0
      && now >= connection.heardAt.advanced(bySeconds: seconds)
  }

  /// APNs' `{"reason":…}` or plain text, printable and short; otherwise the error code.
  static func words(of goAway: GoAway) -> String {
    let text = goAway.debugData.prefix(120).map { 0x20...0x7E ~= $0 ? Character(UnicodeScalar($0)) : "?" }
    return text.isEmpty ? "\(goAway.code)" : "\(goAway.code): \(String(text))"
  }
}
