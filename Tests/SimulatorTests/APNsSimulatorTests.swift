import Foundation
import HTTP2
import Simulator
import TLS
import TestSupport
import Testing
import Wire

@testable import Reactor

@Suite struct APNsSimulatorTests {
  @Test("Over a socket with TLS: pushes are answered and journaled as lines of JSON")
  func socket() throws {
    let certificates = try TestCertificates.make()
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("journal-\(UUID().uuidString).ndjson").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let simulator = try RunningSimulator(certificates, journal: Journal(path: path)) {
      try APNsService(configuration: APNsConfiguration(), journal: $0, time: $1)
    }
    // It has tokens and payloads.
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
    let loop = try EventLoop()
    let sender = Sender()
    let session = ClientSession(handler: sender)
    sender.session = session
    let link = Link(
      loop: loop, machine: session, to: Endpoint(host: "127.0.0.1", port: simulator.port),
      tls: try TLSClientContext(ca: certificates.authority, alpn: ["h2"]))
    link.start()
    #expect(loop.run { sender.statuses.count == Sender.total || sender.end != nil })
    #expect(sender.end == nil)
    #expect(sender.statuses.allSatisfy { $0 == 200 })
    session.drain()
    #expect(loop.run { sender.end != nil })
    simulator.stop()
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    #expect(lines.count == Sender.total)
    let first = try #require(JSONSerialization.jsonObject(with: Data(lines[0].utf8)) as? [String: Any])
    #expect(first["token"] as? String == "abab")
    #expect((first["answer"] as? [String: Any])?["status"] as? Int == 200)
    #expect((first["payload"] as? [String: Any])?["aps"] != nil)
    #expect(!lines[0].contains("bearer"))
    #expect(((first["headers"] as? [String: Any])?["authorization"] as? [String: Any])?["iss"] as? String == "DEF123GHIJ")
  }

  @Test("With a client authority only clients with a certificate come in, and need neither token nor topic")
  func clientCertificate() throws {
    let certificates = try TestCertificates.make()
    var configuration = APNsConfiguration()
    configuration.clientAuthority = certificates.authority
    let loop = try EventLoop()
    let service = try APNsService(
      configuration: configuration, journal: Journal(keepsEntries: true), time: loop.time)
    let simulator = try ProviderSimulator(
      service, at: (Endpoint(host: "127.0.0.1", port: 0), certificates.server, certificates.serverKey), loop: loop)
    for identity in [nil, try Identity.pem(certificates.clientCombined)] {
      let sender = Sender(total: 1)
      let session = ClientSession(handler: sender)
      sender.session = session
      let link = Link(
        loop: loop, machine: session, to: Endpoint(host: "127.0.0.1", port: simulator.port),
        tls: try TLSClientContext(ca: certificates.authority, identity: identity, alpn: ["h2"]))
      link.start()
      #expect(loop.run { sender.statuses.count == 1 || sender.end != nil })
      #expect((sender.end == nil) == (identity != nil))
      link.close()
    }
    simulator.close()
    #expect(loop.run { loop.owned.count == 0 })
  }

  /// Sends a number of pushes as fast as streams come free.
  final class Sender: ClientSessionHandler {
    static let total = 3000
    let total: Int
    weak var session: ClientSession?
    var sent = 0
    var statuses: [Int] = []
    var end: TransportEnd?
    private var values = HeaderValues()
    private let template = HeaderTemplate(
      constant: [(":method", "POST"), (":scheme", "https"), (":authority", "apns"), ("apns-topic", "com.example.app")],
      variable: [":path", "authorization"])
    private let authorization: [UInt8]

    init(total: Int = Sender.total) {
      self.total = total
      let parts = [
        #"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":\#(Int(Date().timeIntervalSince1970))}"#,
      ]
      .map { Data($0.utf8).base64EncodedString().replacing("=", with: "") }
      authorization = Array("bearer \(parts[0]).\(parts[1]).\(String(repeating: "A", count: 86))".utf8)
    }

    func fill() {
      while sent < total, let session, session.availableStreams > 0 {
        values.removeAll()
        values.append(Array("/3/device/abab".utf8))
        values.append(authorization)
        session.submit(template, body: Array(#"{"aps":{"alert":"hi"}}"#.utf8), tag: sent, &values)
        sent += 1
      }
    }

    func sessionReady() {}
    func answersReady(in session: ClientSession) {
      while let (_, response) = session.nextAnswer() {
        statuses.append(response.status)
        fill()
      }
    }
    func failed(_ tag: Int, _ failure: RequestFailure) { statuses.append(-1) }
    func streamsAvailable() { fill() }
    func goAwayReceived(_ goAway: GoAway) {}
    func sessionEnded(_ reason: TransportEnd) { end = reason }
  }
}
