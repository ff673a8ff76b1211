import HTTP2
import PushCore
import TLS
import Wire

/// Sends an application's web pushes to one push service, and interprets the answers. Each push is encrypted for its device (RFC
/// 8291).
public final class WebPushProvider: PushProvider {
  private var credentials: WebPushCredentials
  public let origin: WebPushOrigin
  private var headers: WebPushHeaders
  private let time: Turn
  weak var pool: ProviderPool?
  private var messages: [WebPushMessage?] = []
  /// By the key's id; those used in this half day.
  private var authorizations: [[UInt8]: [UInt8]] = [:]
  /// The half day of `authorizations`.
  private var number = -1
  /// The hour of this half day in which the service last refused a token; 0 if it refused none. All workers that renew within
  /// an hour make the same token. Apple asks for at most one new token an hour.
  private var renewal = 0
  private var checkAt = MonotonicTime(nanoseconds: .min)

  private static let checkInterval = 10.0
  private static let renewalsOfNumber = 16

  public init(_ credentials: WebPushCredentials, origin: WebPushOrigin, time: Turn) {
    self.credentials = credentials
    self.origin = origin
    self.time = time
    headers = WebPushHeaders(origin)
  }

  let platform = Platform.webpush
  var endpoint: ProviderEndpoint {
    // WNS may accept a push and say in a header that it is throttled.
    ProviderEndpoint(
      target: credentials.target(of: origin), keptHeaders: Self.keptHeaders, keepsHeadersOfSuccess: true, allowsHTTP1: true)
  }
  var credentialName: String { credentials.keys.map(\.description).joined(separator: ", ") }

  /// The headers of an answer that follow those of every pool.
  private static let keptHeaders = ["location", "apns-id", "x-wns-status", "x-wns-error-description"]
  private static let location = ProviderPool.keptHeaders.count
  private static let (apnsID, wnsStatus, wnsError) = (location + 1, location + 2, location + 3)

  /// Uses other keys from now on. Pushes in flight finish with the old ones.
  public func replaceCredentials(_ credentials: WebPushCredentials) {
    self.credentials = credentials
    authorizations = [:]
    pool?.credentialReplaced()
  }

  // MARK: Requests

  /// Encrypts a push for a device. Nil if the subscription or its VAPID key is unusable.
  /// - Parameters:
  ///   - token: the device's token, see ``WebPushSubscription``.
  ///   - badge: the device's counter; nil if it has none.
  public func message(_ template: WebPushTemplate, token: ArraySlice<UInt8>, badge: Int64?) -> WebPushMessage? {
    guard let subscription = WebPushSubscription(token: token),
      let key = credentials.key(WebPushSubscription.keyID(of: token)),
      let body = try? MessageEncryption.encrypt(
        template.payload(badge: badge, token: token), publicKey: subscription.publicKey, auth: subscription.auth)
    else { return nil }
    return WebPushMessage(
      path: Array(subscription.endpoint.dropFirst(WebPushSubscription.origin(of: token).count)), key: key,
      timeToLive: template.timeToLive(at: time.wallClock), urgency: template.urgency, topic: template.topic, body: body)
  }

  /// Sends a message. Requires the account's `capacity > 0`.
  public func send(_ message: consuming WebPushMessage, for account: PoolAccount, tag: Int, wantsName: Bool) {
    let slot = account.pool.slots.take(tag: tag, account: account.number, wantsName: wantsName)
    if slot == messages.count { messages.append(consume message) } else { messages[slot] = consume message }
    account.pool.transmit(slot)
  }

  func submit(_ slot: Int, to session: ClientSession) -> Bool {
    guard let message = messages[slot] else { return false }
    if let authorization = authorization(of: message.key) {
      headers.submit(message, authorization: authorization, to: session, tag: slot)
    } else {
      pool?.giveBack(slot, .unauthorised)
    }
    return false
  }

  func forget(_ slot: Int) { messages[slot] = nil }

  /// A service looks at the subscription first, so a probe to none says nothing about the key.
  let probesCredential = false

  func probe(_ question: ProbeQuestion) -> ProbeRequest? {
    guard authorise() != nil, let key = credentials.keys.first else { return nil }
    return authorization(of: key).map(headers.probe)
  }

  // MARK: Answers

  func interpret(_ response: Response, to slot: Int?) -> ReplyMeaning {
    WebPushReply.interpret(
      status: response.status, body: response.body, path: slot.flatMap { messages[$0]?.path } ?? [],
      headers: .init(
        retryAfter: response.header(ProviderPool.retryAfter), wnsError: response.header(Self.wnsError),
        wnsStatus: response.header(Self.wnsStatus)), now: time.wallClock)
  }

  func words(for meaning: ReplyMeaning) -> String { WebPushReply.words(for: meaning) }

  /// Apple's id of the message. The address that other services give a message is a secret, so its name is shown.
  func messageName(in response: Response) -> [UInt8]? {
    if let id = response.header(Self.apnsID), id.count <= Self.longestName { return id }
    return response.header(Self.location).map { WebPushSubscription.name(of: $0[...]) }
  }

  /// Bytes; Apple's ids have 36. Any server may answer, and a list's result has the names of all its pushes.
  private static let longestName = 64

  // MARK: Authorisation

  func authorise() -> Authorisation? {
    let now = time.now
    if now >= checkAt {
      checkAt = now.advanced(bySeconds: Self.checkInterval)
      let current = VAPIDKey.number(at: time.wallClock)
      if current != number { (number, renewal, authorizations) = (current, 0, [:]) }
    }
    return Authorisation(generation: generation)
  }

  private var generation: Int { number * Self.renewalsOfNumber + renewal }

  /// - Parameter key: of the subscription. A push that is sent again after a reload keeps it, even if it isn't configured any more.
  /// - Returns: nil if the key can't sign; then the pool has stopped, and its sessions take no requests.
  private func authorization(of key: VAPIDKey) -> [UInt8]? {
    if let made = authorizations[key.id] { return made }
    let current = credentials.key(key.id[...]) ?? key
    do {
      let made = try current.authorization(for: origin, number, renewal: renewal)
      authorizations[key.id] = made
      return made
    } catch {
      pool?.stopCredential("the key can't sign: \(error)", .internalServerError)
      return nil
    }
  }

  func replaceAuthorisation(_ generation: Int, _ refusal: Authorisation.Refusal, isTrusted: Bool) -> Bool {
    if generation != self.generation { return true }
    let hour = Int(time.wallClock / 3_600_000) - number * 12 + 1
    guard refusal == .expired, renewal < hour, hour < Self.renewalsOfNumber else { return false }
    renewal = hour
    authorizations = [:]
    return true
  }
}
