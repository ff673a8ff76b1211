import HTTP2
import PushCore
import Wire

/// Makes FCM requests with one project's service account and interprets the answers.
public final class FCMProvider: PushProvider {
  private var credentials: FCMCredentials
  private var values = HeaderValues()
  private var tokens: AccessTokens
  private var payloads: [[UInt8]] = []
  private let time: Turn
  private let dialer: any Dialer
  weak var pool: ProviderPool? { didSet { tokens.pool = pool } }

  public init(_ credentials: FCMCredentials, time: Turn, dialer: any Dialer) {
    self.credentials = credentials
    self.time = time
    self.dialer = dialer
    tokens = AccessTokens(credentials, time: time, dialer: dialer)
  }

  let platform = Platform.fcm
  var endpoint: ProviderEndpoint { ProviderEndpoint(target: credentials.target) }
  var credentialName: String { credentials.account.description }

  /// Uses another account from now on. Pushes in flight finish with the old account.
  public func replaceCredentials(_ credentials: FCMCredentials) {
    self.credentials = credentials
    tokens.stop()
    tokens = AccessTokens(credentials, time: time, dialer: dialer)
    tokens.pool = pool
    pool?.credentialReplaced()
  }

  // MARK: Requests

  /// Sends a request body `{"message":{…}}`. Requires the account's `capacity > 0`.
  /// - Parameter wantsName: reads FCM's name for the message from the answer, which costs as much as sending.
  public func send(payload: consuming [UInt8], for account: PoolAccount, tag: Int, wantsName: Bool) {
    let slot = account.pool.slots.take(tag: tag, account: account.number, wantsName: wantsName)
    if slot == payloads.count { payloads.append(consume payload) } else { payloads[slot] = consume payload }
    account.pool.transmit(slot)
  }

  func submit(_ slot: Int, to session: ClientSession) -> Bool {
    if let headers = tokens.current?.headers { session.submit(headers, body: payloads[slot], tag: slot, &values) }
    return false
  }

  func forget(_ slot: Int) { payloads[slot] = [] }

  func probe(_ question: ProbeQuestion) -> ProbeRequest? {
    guard authorise() != nil, let headers = tokens.current?.headers else { return nil }
    let device = if case .answers = question { ProviderProbe.fcmDevice } else { CredentialProbe.fcmDevice }
    return .fcm(headers, device: device)
  }

  // MARK: Answers

  func interpret(_ response: Response, to slot: Int?) -> ReplyMeaning {
    FCMReply.interpret(
      status: response.status, body: response.body, retryAfter: response.header(ProviderPool.retryAfter), now: time.wallClock)
  }

  func words(for meaning: ReplyMeaning) -> String { FCMReply.words(for: meaning) }

  func messageName(in response: Response) -> [UInt8]? { FCMReply.messageName(response.body) }

  // MARK: Authorisation

  var source: AccessTokens? { tokens }

  func authorise() -> Authorisation? { tokens.authorise(at: time.now).map { Authorisation(generation: $0) } }

  func replaceAuthorisation(_ generation: Int, _ refusal: Authorisation.Refusal, isTrusted: Bool) -> Bool {
    refusal == .expired && tokens.refused(generation, isTrusted: isTrusted, at: time.now)
  }
}
