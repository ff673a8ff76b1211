import HTTP2
import PushCore
import Wire

/// Makes APNs requests with one credential and interprets the answers. With token authentication, a new connection or token
/// carries one push until APNs has answered one. If APNs calls a token expired, the token and the connection are replaced once
/// for all pushes in flight. Each of these pushes is sent again once.
public final class APNsProvider: PushProvider {
  public private(set) var credentials: APNsCredentials
  private var headers: APNsHeaders
  private let time: Turn
  /// True for the sandbox, which gives each accepted push an id for its log.
  private let isSandbox: Bool
  weak var pool: ProviderPool?
  private var pushes: [APNsPush?] = []
  private var token: ProviderToken? { didSet { headers.authorization = token?.authorization } }
  private var choice = TokenChoice()
  private var isTrying = false
  /// True while a push with the trial token is on a stream.
  private var isTrialOut = false
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

  /// Uses another credential from now on. Pushes in flight finish with the old credential.
  /// - Parameter requestTimeout: seconds for an answer, from now on; nil keeps the current value.
  public func replaceCredentials(_ credentials: APNsCredentials, requestTimeout: Double? = nil) {
    self.credentials = credentials
    if let requestTimeout { pool?.connections.setRequestTimeout(requestTimeout) }
    headers = APNsHeaders(authority: credentials.target.authority)
    (token, choice, isTrying, isTrialOut) = (nil, TokenChoice(), false, false)
    tokenCheckAt = MonotonicTime(nanoseconds: .min)
    pool?.credentialReplaced()
  }

  // MARK: Requests

  /// Sends a push. Requires the account's `capacity > 0`.
  /// - Parameter wantsName: reads the sandbox's id of the push from the answer.
  public func send(_ push: consuming APNsPush, for account: PoolAccount, tag: Int, wantsName: Bool = false) {
    let slot = account.pool.slots.take(tag: tag, account: account.number, wantsName: wantsName)
    if slot == pushes.count { pushes.append(nil) }
    pushes[slot] = consume push
    account.pool.transmit(slot)
  }

  func submit(_ slot: Int, to session: ClientSession) -> Bool {
    // Taken out and put back: a copy would cost reference counting.
    if let push = exchange(&pushes[slot], with: nil) {
      headers.submit(push, to: session, tag: slot)
      pushes[slot] = consume push
    }
    guard isTrying else { return false }
    isTrialOut = true
    chooseToken()
    return true
  }

  func forget(_ slot: Int) { pushes[slot] = nil }

  func probe(_ question: ProbeQuestion) -> ProbeRequest? {
    var (topic, device): ([UInt8]?, String) = (nil, ProviderProbe.apnsDevice)
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

  func interpret(_ response: Response, to slot: Int?) -> ReplyMeaning {
    APNsReply.interpret(
      status: response.status, body: response.body, retryAfter: response.header(ProviderPool.retryAfter), now: time.wallClock)
  }

  func words(for meaning: ReplyMeaning) -> String { APNsReply.words(for: meaning) }

  /// `apns-unique-id` follows the headers that every pool keeps.
  func messageName(in response: Response) -> [UInt8]? { response.header(ProviderPool.keptHeaders.count) }

  /// The credential may lack a push type's topic, and a certificate may be for another push type only. A topic that the request
  /// chose concerns only this push.
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
    // Checked before `credentials`, which this would copy: a provider without a key has no token.
    if let token, now < tokenCheckAt { return Authorisation(generation: token.number, allowance: allowance) }
    guard case .token = credentials.authentication else { return Authorisation(generation: 0) }
    choice.look(at: now, wallClock: time.wallClock)
    tokenCheckAt = now.advanced(bySeconds: Self.tokenCheckInterval)
    chooseToken()
    return token.map { Authorisation(generation: $0.number, allowance: allowance) }
  }

  /// One push at a time until a token has been accepted.
  private var allowance: Int { choice.taken == nil && choice.trial != nil ? isTrialOut ? 0 : 1 : .max }

  /// Call after each change of the choice, and when a trial push begins or ends.
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
