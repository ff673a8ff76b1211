import HTTP2
import PushCore
import Wire

/// One APNs credential: as a rule one long-lived connection, whose streams the server's SETTINGS limit.
///
/// With token authentication a new connection carries one push until APNs has answered one. A token that APNs calls expired is
/// replaced once for all pushes in flight, together with the connection; each of them is sent again once.
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

    public init() {}
  }

  private var credentials: APNsCredentials
  private let tokens: ProviderTokenCache
  private var headers: APNsHeaders
  private var pushes: [APNsPush?] = []
  private var token: ProviderToken? { didSet { headers.authorization = token?.authorization } }
  /// When the cache is asked again: another shard may have a newer token, or the clock may have jumped.
  private var tokenCheckAt = MonotonicTime(nanoseconds: .min)

  static let tokenCheckInterval = 10.0

  public init(
    credentials: APNsCredentials, time: Turn, dialer: any Dialer, settings: Settings = Settings(),
    tokens: ProviderTokenCache = .shared
  ) {
    self.credentials = credentials
    self.tokens = tokens
    headers = APNsHeaders(authority: credentials.target.authority)
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
      probesFirst: credentials.notAfter == nil)
  }

  /// Hands a push over. Requires `capacity > 0`.
  public func send(_ push: consuming APNsPush, tag: Int) {
    let slot = slots.take(tag: tag)
    if slot == pushes.count { pushes.append(push) } else { pushes[slot] = push }
    transmit(slot)
  }

  /// Sends with another credential from now on; what is in flight finishes with the old one.
  /// - Parameter requestTimeout: seconds for an answer, from now on; nil: as before.
  public func replaceCredentials(_ credentials: APNsCredentials, requestTimeout: Double? = nil) {
    self.credentials = credentials
    if let requestTimeout { connections.setRequestTimeout(requestTimeout) }
    headers = APNsHeaders(authority: credentials.target.authority)
    token = nil
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
  }

  override func forget(_ slot: Int) { pushes[slot] = nil }

  override func interpret(_ response: Response) -> ReplyMeaning {
    APNsReply.interpret(
      status: response.status, body: response.body, retryAfter: response.header(Self.retryAfter), now: time.wallClock)
  }

  override func advice(_ meaning: ReplyMeaning, for slot: Int?) -> String {
    let words = APNsReply.words(for: meaning)
    guard meaning.connection == .stopTopic, let topic = slot.flatMap({ pushes[$0]?.topic }) else { return words }
    return "\(words) (the topic is \(String(decoding: topic, as: UTF8.self)))"
  }

  override var credentialName: String {
    if case .token(let credential) = credentials.authentication { "\(credential)" } else { "a certificate" }
  }

  /// A credential that takes alerts may lack the topic of another push type, however many ask for it; one that a request chose is its
  /// own affair.
  override func scope(of meaning: ReplyMeaning, _ slot: Int) -> RefusalScope {
    guard meaning.connection == .stopTopic else { return .everyPush }
    return switch pushes[slot]?.template.topicOrigin {
    case .app: .everyPush
    case .pushType: hasBeenTaken ? .thisPush : .everyPushUntilTaken
    case .request, nil: .thisPush
    }
  }

  // MARK: Authorisation

  override func authorise() -> Int? {
    let now = time.now
    // Before any look at the credential, which would copy it: a pool without a key has no token.
    if let token, now < tokenCheckAt { return token.generation }
    guard case .token(let credential) = credentials.authentication else { return 0 }
    do {
      let fresh = try tokens.token(of: credential, at: now, wallClock: time.wallClock)
      if fresh.generation != token?.generation { observed(.tokenRefreshed) }
      token = fresh
      tokenCheckAt = now.advanced(bySeconds: Self.tokenCheckInterval)
      return fresh.generation
    } catch {
      stopCredential("the key can't sign: \(error)", .invalidAPNsCredential, "check the key file")
      return nil
    }
  }

  override func renewAuthorisation(after generation: Int, isTrusted: Bool) -> Bool {
    guard case .token(let credential) = credentials.authentication else { return false }
    let now = time.now
    let fresh = try? tokens.successor(of: generation, of: credential, at: now, wallClock: time.wallClock)
    return take(fresh, at: now)
  }

  override func redateAuthorisation(after generation: Int) -> Bool {
    guard case .token(let credential) = credentials.authentication else { return false }
    let now = time.now
    let fresh = try? tokens.successor(
      of: generation, of: credential, at: now, wallClock: time.wallClock, ifMisdated: true)
    return take(fresh, at: now)
  }

  private func take(_ fresh: ProviderToken?, at now: MonotonicTime) -> Bool {
    guard let fresh else { return false }
    if fresh.generation != token?.generation { observed(.tokenRefreshed) }
    token = fresh
    tokenCheckAt = now.advanced(bySeconds: Self.tokenCheckInterval)
    return true
  }

  override func restAuthorisation() {
    if case .token(let credential) = credentials.authentication { tokens.rest(credential, at: time.now) }
  }
}
