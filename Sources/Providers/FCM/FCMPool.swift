import HTTP2
import PushCore
import Wire

/// One FCM project: an access token, as many connections as its traffic needs, and the project's pace.
public final class FCMPool: ProviderPool, AccessTokensOwner {
  /// How the pool holds its connections and its pace. Times in seconds.
  public struct Settings: Sendable {
    /// FCM allows some 100 streams on a connection, so traffic needs several.
    public var connections = 8
    public var streamLimit = 1000
    /// Google advises at least 10.
    public var requestTimeout = 30.0
    public var pingInterval = 15.0
    public var pingTimeout = 10.0
    /// This pool's share of the project's 600,000.
    public var messagesPerMinute = 600_000

    public init() {}
  }

  private var credentials: FCMCredentials
  private var headers: FCMHeaders
  private var tokens: AccessTokens
  private var pacer: Pacer
  /// The request bodies, by slot.
  private var payloads: [[UInt8]] = []
  private var token: AccessTokens.Token?

  public init(credentials: FCMCredentials, time: Turn, dialer: any Dialer, settings: Settings = Settings()) {
    self.credentials = credentials
    headers = FCMHeaders(credentials)
    tokens = AccessTokens(credentials, time: time, dialer: dialer)
    pacer = Pacer(perMinute: settings.messagesPerMinute, at: time.now)
    var configuration = ClientConfiguration()
    configuration.ownStreamLimit = settings.streamLimit
    configuration.requestTimeout = settings.requestTimeout
    configuration.pingInterval = settings.pingInterval
    configuration.pingTimeout = settings.pingTimeout
    configuration.keptResponseHeaders = Self.keptHeaders
    configuration.keepsHeadersOfSuccess = false
    super.init(
      time: time, dialer: dialer,
      connections: ConnectionSet(
        time: time, dialer: dialer, target: credentials.target, configuration: configuration,
        maximum: settings.connections),
      probesFirst: false)
    tokens.owner = self
  }

  deinit { tokens.stop() }

  /// Hands over a request body `{"message":{…}}`. Requires `capacity > 0`.
  /// - Parameter wantsName: FCM's name for the message is to be read from its answer, which costs as much as sending does.
  public func send(payload: [UInt8], tag: Int, wantsName: Bool) {
    let slot = slots.take(tag: tag, account: 0)
    slots[slot].wantsName = wantsName
    if slot == payloads.count { payloads.append(payload) } else { payloads[slot] = payload }
    transmit(slot)
  }

  /// Sends with another account from now on; what is in flight finishes with the old one.
  public func replaceCredentials(_ credentials: FCMCredentials) {
    self.credentials = credentials
    headers = FCMHeaders(credentials)
    tokens.stop()
    tokens = AccessTokens(credentials, time: time, dialer: dialer)
    tokens.owner = self
    token = nil
    credentialReplaced(target: credentials.target)
  }

  /// Another share of the project's quota from now on.
  public func changePace(messagesPerMinute: Int) {
    pacer.change(perMinute: messagesPerMinute, at: time.now)
    rearm()
  }

  override func submit(_ slot: Int, to session: ClientSession) {
    guard let token else { return }
    headers.submit(payloads[slot], authorization: token.authorization, to: session, tag: slot)
  }

  override func forget(_ slot: Int) { payloads[slot] = [] }

  override func canaryRequest() -> ProbeRequest? { request(to: Canary.fcmDevice) }
  override func credentialRequest(of account: Int) -> ProbeRequest? { request(to: CredentialProbe.fcmDevice) }

  private func request(to device: String) -> ProbeRequest? {
    guard authorise() != nil, let token else { return nil }
    return .fcm(headers.template, authorization: token.authorization, device: device)
  }

  override func interpret(_ response: Response) -> ReplyMeaning {
    FCMReply.interpret(
      status: response.status, body: response.body, retryAfter: response.header(Self.retryAfter), now: time.wallClock)
  }

  override func advice(_ meaning: ReplyMeaning, for slot: Int) -> String { FCMReply.words(for: meaning) }

  override public var isCredentialRefused: Bool { super.isCredentialRefused || tokens.isRefused }

  override var credentialName: String { credentials.account.description }

  override func messageName(in response: Response) -> [UInt8]? { FCMReply.messageName(response.body) }

  // MARK: Authorisation

  override func authorise() -> Int? {
    let now = time.now
    if let token, now < token.renewAt { return token.generation }
    token = tokens.current(at: now)
    return token?.generation
  }

  override func renewAuthorisation(after generation: Int, isTrusted: Bool) -> Bool {
    token = nil
    return tokens.refused(generation, isTrusted: isTrusted, at: time.now)
  }

  func accessTokenReady() {
    token = nil
    authorisationSettled()
  }

  func accessTokenFailed(reason: String) {
    token = nil
    giveBackResends(.unauthorised)
    rearm()
  }

  // MARK: Pace

  override func paceAllowance() -> Int { pacer.available(at: time.now) }
  override func paceTaken() { pacer.take() }
  override func outageEnded() {
    if health.isShortOfQuota { pacer.lower(at: time.now) }
    health.isShortOfQuota = false
    pacer.ramp(from: time.now)
  }

  override var providerState: PoolState? {
    if let token, time.now < token.expiresAt { return nil }
    if tokens.isFetching { return .connecting }
    return tokens.lastFailure.isEmpty ? nil : .backingOff(reason: tokens.lastFailure)
  }

  override var providerDeadline: MonotonicTime {
    var next = tokens.deadline
    if isWaitingForRoom, connections.sendableStreams > 0 {
      let now = time.now
      let paced = pacer.nextToken(after: now)
      if paced > now { next = min(next, paced) }
    }
    return next
  }

  override func providerDeadlineReached(at now: MonotonicTime) { tokens.deadlineReached(at: now) }
  override func providerClosing() { tokens.stop() }
}
