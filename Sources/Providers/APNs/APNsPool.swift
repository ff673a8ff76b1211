import HTTP2
import PushCore
import Wire

/// One APNs credential: as a rule one long-lived connection, whose streams the server's SETTINGS limit, for all topics that it has.
///
/// With token authentication a new connection carries one push until APNs has answered one, and so does a new token. One that APNs calls
/// expired is replaced once for all pushes in flight, together with the connection; each of them is sent again once.
public final class APNsPool: ProviderPool {
  /// How the pool holds its connections. Times in seconds.
  public struct Settings: Sendable {
    public var connections = 1
    /// Streams at once on a connection, whatever the server would allow.
    public var streamLimit = 1000
    public var requestTimeout = 30.0
    /// Silence after which a PING asks whether the server is still there, and how long its answer may take: together the
    /// time in which a dead connection is found out.
    public var pingInterval = 15.0
    public var pingTimeout = 10.0
    /// The provider names each push it takes, for its own log: only the sandbox does.
    public var isSandbox = false

    public init() {}
  }

  private var credentials: APNsCredentials
  private var headers: APNsHeaders
  private var pushes: [APNsPush?] = []
  /// What the next push goes out with.
  private var token: ProviderToken? { didSet { headers.authorization = token?.authorization } }
  private var choice = TokenChoice()
  /// The next push is to try the token on trial; which one does is `trialSlot`.
  private var isTrying = false
  /// When the clock is looked at again.
  private var tokenCheckAt = MonotonicTime(nanoseconds: .min)

  static let tokenCheckInterval = 10.0

  public init(credentials: APNsCredentials, time: Turn, dialer: any Dialer, settings: Settings = Settings()) {
    self.credentials = credentials
    headers = APNsHeaders(authority: credentials.target.authority)
    var configuration = ClientConfiguration()
    configuration.ownStreamLimit = settings.streamLimit
    configuration.requestTimeout = settings.requestTimeout
    configuration.pingInterval = settings.pingInterval
    configuration.pingTimeout = settings.pingTimeout
    configuration.keptResponseHeaders = Self.keptHeaders + ["apns-unique-id"]
    configuration.keepsHeadersOfSuccess = settings.isSandbox
    super.init(
      time: time, dialer: dialer,
      connections: ConnectionSet(
        time: time, dialer: dialer, target: credentials.target, configuration: configuration,
        maximum: settings.connections),
      probesFirst: credentials.notAfter == nil)
  }

  /// Hands a push over. Requires `capacity > 0`.
  /// - Parameters:
  ///   - account: the number of the ``PoolAccount`` whose push it is.
  ///   - wantsName: what the sandbox calls the push is to be read from its answer.
  public func send(_ push: consuming APNsPush, tag: Int, account: Int = 0, wantsName: Bool = false) {
    let slot = slots.take(tag: tag, account: account)
    slots[slot].wantsName = wantsName
    if slot == pushes.count { pushes.append(push) } else { pushes[slot] = push }
    transmit(slot)
  }

  /// Sends with another credential from now on; what is in flight finishes with the old one.
  /// - Parameter requestTimeout: seconds for an answer, from now on; nil: as before.
  public func replaceCredentials(_ credentials: APNsCredentials, requestTimeout: Double? = nil) {
    self.credentials = credentials
    if let requestTimeout { connections.setRequestTimeout(requestTimeout) }
    headers = APNsHeaders(authority: credentials.target.authority)
    (token, choice, isTrying) = (nil, TokenChoice(), false)
    tokenCheckAt = MonotonicTime(nanoseconds: .min)
    probesFirst = credentials.notAfter == nil
    credentialReplaced(target: credentials.target)
  }

  /// When the certificate ends, in UNIX seconds; nil for a key.
  public var credentialNotAfter: Int64? { credentials.notAfter }

  override func submit(_ slot: Int, to session: ClientSession) {
    // Moved out and back: a copy would have to be counted.
    var push: APNsPush?
    swap(&push, &pushes[slot])
    if let push {
      headers.submit(push, to: session, tag: slot)
    }
    swap(&push, &pushes[slot])
    if isTrying {
      trialSlot = slot
      chooseToken()
    }
  }

  override func forget(_ slot: Int) { pushes[slot] = nil }

  override func canaryRequest() -> ProbeRequest? {
    guard authorise() != nil, let push = pushes.lazy.compactMap(\.self).first(where: { !$0.template.isBroadcast }) else {
      return nil
    }
    return request(for: push.topic, to: Canary.apnsDevice)
  }

  override func credentialRequest(of account: Int) -> ProbeRequest? {
    request(for: accounts[account]?.topic ?? [], to: CredentialProbe.apnsDevice)
  }

  private func request(for topic: [UInt8], to device: String) -> ProbeRequest {
    .apns(
      credentials.target, topic: String(decoding: topic, as: UTF8.self), authorization: token?.authorization, device: device)
  }

  override func interpret(_ response: Response) -> ReplyMeaning {
    APNsReply.interpret(
      status: response.status, body: response.body, retryAfter: response.header(Self.retryAfter), now: time.wallClock)
  }

  override func messageName(in response: Response) -> [UInt8]? { response.header(Self.uniqueID) }

  /// Its place among the kept headers.
  private static let uniqueID = keptHeaders.count

  override func advice(_ meaning: ReplyMeaning, for slot: Int) -> String {
    let words = APNsReply.words(for: meaning)
    guard meaning.connection == .stopTopic else { return words }
    return "\(words) (the topic is \(topic(for: slot, of: slots[slot].account)))"
  }

  override func topic(for slot: Int?, of account: Int) -> String {
    String(decoding: slot.flatMap { pushes[$0]?.topic } ?? accounts[account]?.topic ?? [], as: UTF8.self)
  }

  override func noteRefused(_ slot: Int) {
    refusedAccount = slots[slot].account
    guard let template = pushes[slot]?.template, let record = accounts[refusedAccount] else { return }
    if let topic = template.appTopic ?? (record.topic.isEmpty ? template.topic : nil) {
      accounts[refusedAccount]?.topic = topic
    }
  }

  override var credentialName: String {
    if case .token(let credential) = credentials.authentication { "\(credential)" } else { "a certificate" }
  }

  /// A credential may lack the topic of a push type, however many ask for it, and a certificate may be for another push type alone; a topic that
  /// a request chose is its own affair.
  override func scope(of meaning: ReplyMeaning, _ slot: Int) -> RefusalScope {
    guard meaning.connection == .stopTopic, let push = pushes[slot] else { return .everyPush }
    let app = push.template.appTopic ?? push.topic
    return switch push.template.topicOrigin {
    case .app: credentials.isForOtherTypes(of: app) ? .thisPush : .everyPush
    case .pushType where accounts[slots[slot].account]?.hasBeenTaken != true && !credentials.isForOtherTypes(of: app):
      .everyPushUntilTaken
    case .pushType, .request: .thisPush
    }
  }

  // MARK: Authorisation

  override func authorise() -> Int? {
    let now = time.now
    // Before any look at the credential, which would copy it: a pool without a key has no token.
    if let token, now < tokenCheckAt { return token.number }
    guard case .token = credentials.authentication else { return 0 }
    choice.look(at: now, wallClock: time.wallClock)
    tokenCheckAt = now.advanced(bySeconds: Self.tokenCheckInterval)
    chooseToken()
    return token?.number
  }

  /// After each change of the choice, and when a push begins or ends to try what is on trial.
  private func chooseToken() {
    guard case .token(let credential) = credentials.authentication else { return }
    isTrying = choice.trial != nil && trialSlot < 0
    guard let number = isTrying ? choice.trial : choice.taken ?? choice.trial, number != token?.number else { return }
    do { token = try credential.token(number) } catch {
      token = nil
      stopCredential("the key can't sign: \(error)", .invalidAPNsCredential)
    }
  }

  /// As long as no token has been taken, one push goes at a time.
  override func paceAllowance() -> Int { choice.taken == nil && choice.trial != nil ? (trialSlot < 0 ? 1 : 0) : .max }

  override func trialSucceeded(with generation: Int) {
    guard generation == choice.trial else { return }
    choice.took(generation)
    observed(.tokenRefreshed)
    chooseToken()
    resendUnauthorised()
  }

  override func trialEnded() {
    chooseToken()
    resendUnauthorised()
  }

  override func renewAuthorisation(after generation: Int, isTrusted: Bool) -> Bool {
    replaceToken(generation, .expired, isTrusted: isTrusted)
  }

  override func replaceAuthorisation(after generation: Int, isTooMany: Bool) -> Bool {
    replaceToken(generation, isTooMany ? .tooMany : .invalid)
  }

  private func replaceToken(_ number: Int, _ refusal: TokenChoice.Refusal, isTrusted: Bool = false) -> Bool {
    guard case .token = credentials.authentication else { return false }
    let hasOther = choice.refused(number, refusal, isTrusted: isTrusted, at: time.now, wallClock: time.wallClock)
    chooseToken()
    return hasOther
  }
}
