import Foundation
import HTTP2
import Reactor
import TLS
import TestSupport
import Testing
import Wire

/// Against a server that shares nothing with these modules but the framing library: nghttpd, over TLS on a socket.
@Suite struct IndependentServerTests {
  static let program = ["/usr/sbin/nghttpd", "/usr/bin/nghttpd"].first { FileManager.default.isExecutableFile(atPath: $0) }

  @Test(
    "Five thousand requests to nghttpd are all answered, with their bodies",
    .enabled(if: program != nil || isNothingLeftOut, "nghttpd isn't installed"))
  func nghttpd() throws {
    let certificates = try TestCertificates.make()
    try FileManager.default.createDirectory(
      atPath: certificates.path("www/3/device"), withIntermediateDirectories: true)
    let loop = try EventLoop()
    let port = try freePort(loop)
    let server = try ChildProcess(
      [
        #require(Self.program), "--echo-upload", "-d", certificates.path("www"), "-a", "127.0.0.1", "\(port)",
        certificates.serverKey, certificates.server,
      ], output: "/dev/null")
    defer { server.end() }
    let sender = Sender(5000)
    sender.dial = {
      let session = ClientSession(handler: sender)
      let tls = try? TLSClientContext(ca: certificates.authority, alpn: ["h2"])
      Link(loop: loop, machine: session, to: Endpoint(host: "127.0.0.1", port: port), tls: tls).start()
      return session
    }
    sender.redial = { loop.schedule(after: 0.05) { sender.connect() } }
    sender.connect()
    #expect(loop.run(atMost: 60) { sender.answered == 5000 || sender.failed > 0 })
    #expect(sender.answered == 5000)
    #expect(sender.echoed == 5000)
    sender.session?.drain()
    #expect(loop.run { sender.hasEnded })
  }

  private func freePort(_ loop: EventLoop) throws -> UInt16 {
    let listener = try Listener(loop: loop, host: "127.0.0.1", port: 0) { _ in nil }
    defer { listener.close() }
    return listener.port
  }

  final class Sender: ClientSessionHandler {
    let total: Int
    var dial: (() -> ClientSession)?
    var redial: (() -> Void)?
    var session: ClientSession?
    var (sent, answered, echoed, failed) = (0, 0, 0, 0)
    var hasEnded = false
    private var values = HeaderValues()
    private let template = HeaderTemplate(
      constant: [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/3/device/")],
      variable: ["apns-id"], unindexed: ["apns-id"])

    init(_ total: Int) { self.total = total }

    func connect() { session = dial?() }

    private func body(_ tag: Int) -> [UInt8] { Array(#"{"aps":{"badge":\#(tag)}}"#.utf8) }

    private func fill() {
      while sent < total, let session, session.sendableStreams > 0 {
        values.removeAll()
        values.append(decimal: Int64(sent))
        session.submit(template, body: body(sent), tag: sent, &values)
        sent += 1
      }
    }

    func sessionReady() {}
    func streamsAvailable() { fill() }
    func answersReady(in session: ClientSession) {
      while let (tag, response) = session.nextAnswer() {
        answered += 1
        if response.status == 200, response.body == body(tag) { echoed += 1 }
        fill()
      }
    }
    func failed(_ tag: Int, _ failure: RequestFailure) { failed += 1 }
    func goAwayReceived(_ goAway: GoAway) {}
    func sessionEnded(_ reason: TransportEnd) {
      hasEnded = true
      // Not listening yet.
      if sent == 0 { redial?() }
    }
  }
}
