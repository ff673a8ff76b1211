import Foundation
import HTTP2
import Reactor
import Simulator
import TLS
import TestSupport
import Wire

/// A client session against the FCM simulator on an in-memory wire, with a virtual clock.
final class FCMTalk: ClientSessionHandler {
  let service: FCMService
  let pair: MachinePair
  let client: ClientSession
  let clock: APNsTalk.Clock
  var answers: [Int: Response] = [:]
  var failures: [Int: RequestFailure] = [:]
  var goAways: [GoAway] = []
  /// What `authorize` got.
  var accessToken = "none"
  private var values = HeaderValues()
  private let template = HeaderTemplate(
    constant: [(":method", "POST"), (":scheme", "https"), (":authority", "fcm")],
    variable: [":path", "authorization", "content-type"])

  init(_ configuration: FCMConfiguration = .init()) throws {
    let clock = APNsTalk.Clock()
    self.clock = clock
    service = try FCMService(
      configuration: configuration, journal: Journal(keepsEntries: true), time: clock.turn)
    client = ClientSession(configuration: .init())
    pair = MachinePair(client: client, server: service.accept())
    client.handler = self
    pair.open()
  }

  func submit(_ tag: Int, path: String, body: String, authorization: String?, contentType: String) {
    values.removeAll()
    values.append(Array(path.utf8))
    if let authorization { values.append(Array(authorization.utf8)) } else { values.appendAbsent() }
    values.append(Array(contentType.utf8))
    client.submit(template, body: Array(body.utf8), tag: tag, &values)
  }

  func send(_ tag: Int, _ body: String, project: String = "demo", authorization: String? = "") {
    let header = authorization == "" ? "Bearer \(accessToken)" : authorization
    submit(
      tag, path: "/v1/projects/\(project)/messages:send", body: body, authorization: header, contentType: "application/json")
    pair.exchange()
  }

  /// The claims that a service account makes.
  func claims(_ changes: [String: Any] = [:]) -> [String: Any] {
    let now = clock.milliseconds / 1000
    var claims: [String: Any] = [
      "iss": "push@demo.iam.example", "scope": "https://www.googleapis.com/auth/firebase.messaging",
      "aud": "https://oauth2.googleapis.com/token", "iat": now, "exp": now + 3600,
    ]
    for (name, value) in changes { claims[name] = value }
    return claims
  }

  func requestToken(_ tag: Int, claims: [String: Any], algorithm: String = "RS256", key: SigningKey? = nil) throws {
    let header = Base64URL.encode(Array(#"{"alg":"\#(algorithm)","typ":"JWT","kid":"k1"}"#.utf8))
    let body = Base64URL.encode(try JSONSerialization.data(withJSONObject: claims))
    let signed = header + [UInt8(ascii: ".")] + body
    let signature = try key?.signRS256(signed) ?? [UInt8](repeating: 7, count: 256)
    let assertion = String(decoding: signed + [UInt8(ascii: ".")] + Base64URL.encode(signature), as: UTF8.self)
    submit(
      tag, path: "/token", body: "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)",
      authorization: nil, contentType: "application/x-www-form-urlencoded")
    pair.exchange()
  }

  func authorize() throws {
    try requestToken(-1, claims: claims())
    accessToken = json(-1)["access_token"] as? String ?? "none"
  }

  func json(_ tag: Int = 0) -> [String: Any] {
    let body = answers[tag]?.body ?? []
    return (try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]) ?? [:]
  }

  /// `404 NOT_FOUND UNREGISTERED`, then the fields in violation.
  func outcome(_ tag: Int = 0) -> String {
    let error = json(tag)["error"] as? [String: Any] ?? [:]
    let details = error["details"] as? [[String: Any]] ?? []
    let codes = details.compactMap { $0["errorCode"] as? String }
    let fields = details.flatMap { $0["fieldViolations"] as? [[String: Any]] ?? [] }.compactMap { $0["field"] as? String }
    return (["\(answers[tag]?.status ?? 0)"] + [error["status"] as? String].compactMap { $0 } + codes + fields)
      .joined(separator: " ")
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
