import HTTP2
import Reactor
import Simulator
import TLS
import TestSupport
import Wire

/// A client session against the web push simulator on an in-memory wire, with a virtual clock.
final class WebPushTalk: ClientSessionHandler {
  let service: WebPushService
  let pair: MachinePair
  let client: ClientSession
  let clock: APNsTalk.Clock
  /// The application's VAPID key.
  let key: KeyPair
  var answers: [Int: Response] = [:]
  var failures: [Int: RequestFailure] = [:]
  var goAways: [GoAway] = []
  private var values = HeaderValues()
  private let template: HeaderTemplate

  static let origin = "https://push.test"
  private static let names = [
    ":path", "ttl", "urgency", "topic", "content-encoding", "authorization", "x-wns-cache-policy",
  ]
  private static let kept = [
    "location", "ttl", "apns-id", "retry-after", "x-wns-status", "x-wns-error-description", "content-type",
  ]

  init(_ configuration: WebPushConfiguration = .init(), key: KeyPair? = nil) throws {
    let clock = APNsTalk.Clock()
    self.clock = clock
    self.key = try key ?? KeyPair()
    service = WebPushService(
      configuration: configuration, journal: try Journal(keepsEntries: true), time: clock.turn)
    client = ClientSession(
      configuration: {
        var configuration = ClientConfiguration()
        configuration.keptResponseHeaders = Self.kept
        return configuration
      }())
    template = HeaderTemplate(
      constant: [(":method", "POST"), (":scheme", "https"), (":authority", "push.test")], variable: Self.names)
    pair = MachinePair(client: client, server: service.accept())
    client.handler = self
    pair.open()
  }

  /// The claims and the key of a header that are different from the usual ones.
  struct Token {
    var audience: String? = WebPushTalk.origin
    var subject: String? = "mailto:push@example.com"
    /// Seconds from now.
    var life: Int64? = 12 * 3600
    var algorithm = "ES256"
    /// True to name another key than the one that signs.
    var isForged = false
  }

  func authorization(_ token: Token = Token(), key: KeyPair? = nil) throws -> String {
    let key = key ?? self.key
    var claims: [String] = []
    if let audience = token.audience { claims.append(#""aud":"\#(audience)""#) }
    if let subject = token.subject { claims.append(#""sub":"\#(subject)""#) }
    if let life = token.life { claims.append(#""exp":\#(clock.milliseconds / 1000 + life)"#) }
    let parts = [#"{"typ":"JWT","alg":"\#(token.algorithm)"}"#, "{\(claims.joined(separator: ","))}"]
    let signed = parts.map { base64(Array($0.utf8)) }.joined(separator: ".")
    let signature = try SigningKey(pem: key.pem).signES256(Array(signed.utf8))
    return try "vapid t=\(signed).\(base64(signature)), k=\(base64((token.isForged ? KeyPair() : key).publicPoint))"
  }

  private func base64(_ bytes: [UInt8]) -> String { String(decoding: Base64URL.encode(bytes), as: UTF8.self) }

  static func encrypted(_ text: String, for path: String) throws -> [UInt8] {
    let subscription = try SimulatedSubscription(path: path, origin: origin)
    return try MessageEncryption.encrypt(Array(text.utf8), publicKey: subscription.publicKey, auth: subscription.auth)
  }

  /// Sends one push. The given headers replace the usual ones; nil takes one away.
  func push(_ tag: Int, _ path: String, _ text: String = #"{"title":"hi"}"#, _ headers: [String: String?] = [:]) throws {
    try push(tag, path, body: Self.encrypted(text, for: path), headers)
  }

  func push(_ tag: Int, _ path: String, body: [UInt8], _ headers: [String: String?] = [:]) throws {
    var all = [":path": path, "ttl": "60", "content-encoding": "aes128gcm", "authorization": try authorization()]
    for (name, value) in headers { all[name] = value }
    values.removeAll()
    for name in Self.names {
      if let value = all[name] { values.append(Array(value.utf8)) } else { values.appendAbsent() }
    }
    client.submit(template, body: body, tag: tag, &values)
    pair.exchange()
  }

  func header(_ name: String, _ tag: Int = 0) -> String? {
    guard let index = Self.kept.firstIndex(of: name) else { return nil }
    return answers[tag]?.header(index).map { String(decoding: $0, as: UTF8.self) }
  }

  func body(_ tag: Int = 0) -> String { String(decoding: answers[tag]?.body ?? [], as: UTF8.self) }

  /// The status and the reason in the journal: `403 BadJwtToken`.
  func outcome(_ tag: Int = 0) -> String {
    guard let status = answers[tag]?.status else { return failures[tag].map { "\($0)" } ?? "no answer" }
    let reason = service.journal.entries.last?.reason
    return ([String(status)] + [reason].compactMap { $0 }).joined(separator: " ")
  }

  func sessionReady() {}
  func answersReady(in session: ClientSession) {
    while let (tag, response) = session.nextAnswer() { answers[tag] = response }
  }
  func failed(_ tag: Int, _ failure: RequestFailure) { failures[tag] = failure }
  func streamsAvailable() {}
  func goAwayReceived(_ goAway: GoAway) { goAways.append(goAway) }
  func sessionEnded(_ reason: TransportEnd) {}
}
