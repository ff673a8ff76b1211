import HTTP2
import PushCore
import Wire

/// APNs with one credential: requests, and what their answers mean.
///
/// With token authentication a new connection carries one push until APNs has answered one, and so does a new token. One that APNs calls
/// expired is replaced once for all pushes in flight, together with the connection; each of them is sent again once.
public final class APNsProvider: PushProvider {
  private var credentials: APNsCredentials
  private var headers: APNsHeaders
  private let time: Turn
  /// APNs names each push that it takes, for its own log: only the sandbox does.
  private let isSandbox: Bool
  weak var pool: ProviderPool?
  private var pushes: [APNsPush?] = []
  /// What the next push goes out with.
  private var token: ProviderToken? { didSet { headers.authorization = token?.authorization } }
  private var choice = TokenChoice()
  /// The next push is to try the token on trial.
  private var isTrying = false
  /// A push that tries it is on a stream.
  private var isTrialOut = false
  /// When the clock is looked at again.
  private var tokenCheckAt = MonotonicTime(nanoseconds: .min)

  static let tokenCheckInterval = 10.0

  public init(_ credentials: APNsCredentials, time: Turn, isSandbox: Bool = false) {
    self.credentials = credentials
    self.time = time
    self.isSandbox = isSandbox
    headers = APNsHeaders(authority: credentials.target.authority)
  }

  let platform = Platform.apns
  var endpoint: ProviderEndpoint {
    ProviderEndpoint(
      target: credentials.target, probesFirst: credentials.notAfter == nil, keptHeaders: ["apns-unique-id"],
      keepsHeadersOfSuccess: isSandbox)
  }
  var credentialName: String {
    if case .token(let credential) = credentials.authentication { "\(credential)" } else { "a certificate" }
  }
  /// When the certificate ends, in UNIX seconds; nil for a key.
  public var credentialNotAfter: Int64? { credentials.notAfter }

  /// Sends with another credential from now on; what is in flight finishes with the old one.
  /// - Parameter requestTimeout: seconds for an answer, from now on; nil: as before.
  public func replaceCredentials(_ credentials: APNsCredentials, requestTimeout: Double? = nil) {
    self.credentials = credentials
    if let requestTimeout { pool?.connections.setRequestTimeout(requestTimeout) }
    headers = APNsHeaders(authority: credentials.target.authority)
    (token, choice, isTrying, isTrialOut) = (nil, TokenChoice(), false, false)
    tokenCheckAt = MonotonicTime(nanoseconds: .min)
    pool?.credentialReplaced()
  }

  // MARK: Requests

  /// Hands a push over. Requires the account's `capacity > 0`.
  /// - Parameter wantsName: what the sandbox calls the push is to be read from its answer.
  public func send(_ push: consuming APNsPush, for account: PoolAccount, tag: Int, wantsName: Bool = false) {
    let slot = account.pool.slots.take(tag: tag, account: account.number, wantsName: wantsName)
    if slot == pushes.count { pushes.append(push) } else { pushes[slot] = push }
    account.pool.transmit(slot)
  }

  func submit(_ slot: Int, to session: ClientSession) -> Bool {
    // Moved out and back: a copy would have to be counted.
    var push: APNsPush?
    swap(&push, &pushes[slot])
    if let push {
      headers.submit(push, to: session, tag: slot)
    }
    swap(&push, &pushes[slot])
    guard isTrying else { return false }
    isTrialOut = true
    chooseToken()
    return true
  }

  func forget(_ slot: Int) { pushes[slot] = nil }

  func probe(_ question: ProbeQuestion) -> ProbeRequest? {
    var (topic, device): ([UInt8]?, String) = (nil, Canary.apnsDevice)
    switch question {
    case .answers: if authorise() != nil { topic = pushes.first { $0?.template.isBroadcast == false }??.topic }
    case .takesCredential(let own): (topic, device) = (own, CredentialProbe.apnsDevice)
    }
    return topic.map {
      .apns(
        credentials.target, topic: String(decoding: $0, as: UTF8.self), authorization: token?.authorization, device: device)
    }
  }

  // MARK: Answers

  func interpret(_ response: Response) -> ReplyMeaning {
    APNsReply.interpret(
      status: response.status, body: response.body, retryAfter: response.header(ProviderPool.retryAfter), now: time.wallClock)
  }

  func words(for meaning: ReplyMeaning) -> String { APNsReply.words(for: meaning) }

  /// `apns-unique-id` is the first behind the headers that every pool keeps.
  func messageName(in response: Response) -> [UInt8]? { response.header(ProviderPool.keptHeaders.count) }

  /// A credential may lack the topic of a push type, however many ask for it, and a certificate may be for another push type alone; a topic that
  /// a request chose is its own affair.
  func topic(of slot: Int) -> PushTopic? {
    guard let template = pushes[slot]?.template else { return nil }
    let isForOthers = credentials.isForOtherTypes(of: template.appTopic ?? template.topic)
    let scope: RefusalScope =
      switch template.topicOrigin {
      case .app: isForOthers ? .thisPush : .everyPush
      case .pushType: isForOthers ? .thisPush : .everyPushUntilTaken
      case .request: .thisPush
      }
    return PushTopic(name: template.topic, ofApplication: template.appTopic, scope: scope)
  }

  // MARK: Authorisation

  func authorise() -> Authorisation? {
    let now = time.now
    // Before any look at the credential, which would copy it: a provider without a key has no token.
    if let token, now < tokenCheckAt { return Authorisation(generation: token.number, allowance: allowance) }
    guard case .token = credentials.authentication else { return Authorisation(generation: 0) }
    choice.look(at: now, wallClock: time.wallClock)
    tokenCheckAt = now.advanced(bySeconds: Self.tokenCheckInterval)
    chooseToken()
    return token.map { Authorisation(generation: $0.number, allowance: allowance) }
  }

  /// As long as no token has been taken, one push goes at a time.
  private var allowance: Int { choice.taken == nil && choice.trial != nil ? isTrialOut ? 0 : 1 : .max }

  /// After each change of the choice, and when a push begins or ends to try what is on trial.
  private func chooseToken() {
    guard case .token(let credential) = credentials.authentication else { return }
    isTrying = choice.trial != nil && !isTrialOut
    guard let number = isTrying ? choice.trial : choice.taken ?? choice.trial, number != token?.number else { return }
    do { token = try credential.token(number) } catch {
      token = nil
      pool?.stopCredential("the key can't sign: \(error)", .invalidAPNsCredential)
    }
  }

  func trialSucceeded(with generation: Int) {
    guard generation == choice.trial else { return }
    choice.took(generation)
    pool?.observed(.tokenRefreshed)
    chooseToken()
    pool?.resendUnauthorised()
  }

  func trialEnded() {
    isTrialOut = false
    chooseToken()
    pool?.resendUnauthorised()
  }

  func replaceAuthorisation(_ generation: Int, _ refusal: Authorisation.Refusal, isTrusted: Bool) -> Bool {
    guard case .token = credentials.authentication else { return false }
    let hasOther = choice.refused(generation, refusal, isTrusted: isTrusted, at: time.now, wallClock: time.wallClock)
    chooseToken()
    return hasOther
  }
}
