import Foundation
import HTTP2
import Reactor
import Simulator
import TLS
import TestSupport
import Wire

/// A client session against the APNs simulator on an in-memory wire, with a virtual clock for both.
final class APNsTalk: ClientSessionHandler {
  let service: APNsService
  let pair: MachinePair
  let client: ClientSession
  let clock: Clock
  var answers: [Int: Response] = [:]
  var failures: [Int: RequestFailure] = [:]
  var goAways: [GoAway] = []
  var end: TransportEnd?
  private var values = HeaderValues()
  private let names: [String]
  private let template: HeaderTemplate

  final class Clock {
    let turn = Turn(now: MonotonicTime(nanoseconds: 0), wallClock: 1_764_000_000_000)
    /// Setting it doesn't run timers.
    var milliseconds: Int64 {
      get { turn.wallClock }
      set {
        turn.begin(now: turn.now.advanced(bySeconds: Double(newValue - turn.wallClock) / 1000), wallClock: newValue)
      }
    }
  }

  static let team = "DEF123GHIJ"
  static let keyID = "ABC123DEFG"

  /// - Parameter other: whose simulator this is another connection to.
  init(
    _ configuration: APNsConfiguration = .init(), names: [String] = APNsTalk.usualNames, beside other: APNsTalk? = nil
  ) throws {
    let clock = other?.clock ?? Clock()
    self.clock = clock
    service =
      try other?.service
      ?? APNsService(
        configuration: configuration, journal: Journal(keepsEntries: true),
        time: clock.turn)
    client = ClientSession(
      configuration: {
        var configuration = ClientConfiguration()
        configuration.keptResponseHeaders = ["apns-id", "apns-unique-id", "retry-after", "content-type"]
        return configuration
      }())
    self.names = names
    template = HeaderTemplate(constant: [(":method", "POST"), (":scheme", "https"), (":authority", "apns")], variable: names)
    pair = MachinePair(client: client, server: service.accept())
    client.handler = self
    pair.open()
  }

  static let usualNames = [
    ":path", "authorization", "apns-topic", "apns-push-type", "apns-priority", "apns-id", "apns-expiration", "apns-collapse-id",
  ]

  /// A well-formed provider token; its signature is filler.
  func token(
    issuedAt: Int64? = nil, fraction: String = "", team: String = APNsTalk.team, key: String = APNsTalk.keyID,
    sign: SigningKey? = nil
  ) -> String {
    let header = base64(Array(#"{"alg":"ES256","kid":"\#(key)"}"#.utf8))
    let claims = base64(Array(#"{"iss":"\#(team)","iat":\#(issuedAt ?? clock.milliseconds / 1000)\#(fraction)}"#.utf8))
    let signed = header + "." + claims
    let signature = (try? sign?.signES256(Array(signed.utf8))) ?? [UInt8](repeating: 1, count: 64)
    return "bearer \(signed).\(base64(signature))"
  }

  private func base64(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Sends one push and carries everything over; `headers` replace the usual ones, nil takes one away.
  func push(
    _ tag: Int = 0, token: String = String(repeating: "ab", count: 32), payload: String = #"{"aps":{"alert":"hi"}}"#,
    path: String? = nil, _ headers: [String: String?] = [:]
  ) {
    submit(tag, token: token, payload: payload, path: path, headers)
    pair.exchange()
  }

  func submit(
    _ tag: Int, token: String = String(repeating: "ab", count: 32), payload: String = #"{"aps":{"alert":"hi"}}"#,
    path: String? = nil, _ headers: [String: String?] = [:]
  ) {
    var all: [String: String] = [
      ":path": path ?? "/3/device/\(token)", "authorization": self.token(), "apns-topic": "com.example.app",
      "apns-push-type": "alert",
    ]
    for (name, value) in headers { all[name] = value }
    values.removeAll()
    for name in names { if let value = all[name] { values.append(Array(value.utf8)) } else { values.appendAbsent() } }
    client.submit(template, body: Array(payload.utf8), tag: tag, &values)
  }

  /// Lets so much time pass for the simulator's delays.
  func wait(_ milliseconds: Int64) {
    clock.milliseconds += milliseconds
    clock.turn.runTimers()
    pair.exchange()
  }

  func reason(_ tag: Int = 0) -> String {
    guard let answer = answers[tag] else { return failures[tag].map { "\($0)" } ?? "no answer" }
    return "\(answer.status) \(String(decoding: answer.body, as: UTF8.self))"
  }

  func sessionReady() {}
  func answersReady(in session: ClientSession) {
    while let (tag, response) = session.nextAnswer() { answers[tag] = response }
  }
  func failed(_ tag: Int, _ failure: RequestFailure) { failures[tag] = failure }
  func streamsAvailable() {}
  func goAwayReceived(_ goAway: GoAway) { goAways.append(goAway) }
  func sessionEnded(_ reason: TransportEnd) { end = reason }
}
