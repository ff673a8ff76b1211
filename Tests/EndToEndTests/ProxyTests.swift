import Foundation
import TestSupport
import Testing

@Suite("Proxies", .blocking)
struct ProxyTests {
  private func setting(_ port: some BinaryInteger, login: String = "") -> String {
    #"proxy: "http://\#(login)127.0.0.1:\#(port)", "#
  }

  @Test("APNs, FCM and its token endpoint are reached through Debian's proxies", arguments: ProxyKind.allCases)
  func delivered(_ kind: ProxyKind) throws {
    let site = try Site()
    try site.startSimulator()
    let fcm = try site.startFCM()
    let fcmPort = try #require(fcm.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
    let proxy = try site.startProxy(kind, ports: [site.port, fcmPort])
    try site.configureFleet("sqlite:registry.db", settings: setting(proxy, login: ProxyKind.login), apps: fcm)
    try site.declareTopology()
    try site.send(tokens: [token(1), "fcm:robot"])
    let figures = try site.drain()
    #expect(figures["delivered"] as? Int == 2 && figures["dead_letters"] as? Int == 0, "\(figures)")
    #expect(try site.deliveries() == [token(1): 1])
  }

  enum Fault: String {
    case none, forbidden, away
  }

  struct Refusal: CustomTestStringConvertible {
    var kind: ProxyKind
    var login = ProxyKind.login
    var fault = Fault.none
    var status: Int
    var words: String

    var testDescription: String { "\(kind): \(words)" }
  }

  private static let refusals = [
    Refusal(
      kind: .tinyproxy, login: "pushfleet:wrong-secret@", status: 401,
      words: "Unauthorized; check the user and password in `proxy`"),
    Refusal(
      kind: .squid, login: "pushfleet:wrong-secret@", status: 407,
      words: "Proxy Authentication Required; check the user and password in `proxy`"),
    Refusal(
      kind: .tinyproxy, login: "", status: 407, words: "Proxy Authentication Required; `proxy` needs a user and a password"),
    Refusal(kind: .squid, login: "", status: 407, words: "Proxy Authentication Required; `proxy` needs a user and a password"),
    Refusal(kind: .tinyproxy, fault: .forbidden, status: 403, words: "Access violation; it forbids 127.0.0.1:"),
    Refusal(kind: .squid, fault: .forbidden, status: 403, words: "Forbidden; it forbids 127.0.0.1:"),
    Refusal(kind: .tinyproxy, fault: .away, status: 500, words: "Unable to connect; it gets no connection to 127.0.0.1:"),
    Refusal(kind: .squid, fault: .away, status: 503, words: "Service Unavailable; it gets no connection to 127.0.0.1:"),
  ]

  @Test(
    "a proxy's refusal is told apart from a provider's answer by the log, the metrics and the doctor; all is sent once it is mended",
    arguments: refusals)
  func refused(_ refusal: Refusal) throws {
    let site = try Site()
    try site.startSimulator()
    let proxy = try site.startProxy(refusal.kind, ports: [refusal.fault == .forbidden ? 1 : site.port])
    if refusal.fault == .away { site.stopSimulator() }
    let metrics = try FreePorts.take(1)[0]
    let retries = #"retry: { steps: ["200ms"] }, "#
    try site.configure(
      port: site.port, settings: setting(proxy, login: refusal.login) + retries + #"metrics: "127.0.0.1:\#(metrics)","#)
    try site.declareTopology()
    let tokens = (0..<5).map(token)
    try site.send(tokens: tokens)
    let worker = try site.startWorker()
    let words = "the proxy http://127.0.0.1:\(proxy) refuses the tunnel: \(refusal.status) \(refusal.words)"
    #expect(worker.waitForOutput(words, seconds: 90), "\(worker.outputSoFar)")
    #expect(worker.outputSoFar.contains("provider unreachable"))
    #expect(try site.pushes().isEmpty)
    let page = HTTPProbe(port: metrics).ask("/metrics")?.body ?? ""
    let counted = page.split(separator: "\n").first {
      $0.hasPrefix(#"pushfleet_proxy_refusals_total{status="\#(refusal.status)"}"#)
    }
    #expect(counted != nil && counted?.hasSuffix(" 0") == false, "\(page)")
    let doctor = try site.run(["doctor", "--config", site.file("pushfleet.json5"), "--json"])
    #expect(Site.objects(doctor.output).contains { ($0["finding"] as? String)?.contains(words) == true }, "\(doctor.output)")
    for output in [worker.outputSoFar, doctor.output] {
      #expect(!output.contains("wrong-secret") && !output.contains("correct-horse") && !output.contains("Basic "))
    }
    worker.signal(15)
    #expect(worker.wait() == 0)

    if refusal.fault == .away { try site.startSimulator() }
    let mended = try refusal.fault == .forbidden ? site.startProxy(refusal.kind, ports: [site.port]) : proxy
    try site.configure(port: site.port, settings: setting(mended, login: ProxyKind.login) + retries)
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: tokens.map { ($0, 1) }))
    #expect(try site.depths(["dead"]) == [0])
  }

  @Test("the provider's certificate is verified within the tunnel")
  func verified() throws {
    let site = try Site()
    let certificates = site.certificates
    try site.startSimulator(identity: (certificates.selfSigned, certificates.selfSignedKey))
    let proxy = try site.startProxy(.tinyproxy, ports: [site.port])
    try site.configure(port: site.port, settings: setting(proxy, login: ProxyKind.login))
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    let worker = try site.startWorker()
    let words = "self-signed and not trusted (through the proxy http://127.0.0.1:\(proxy))"
    #expect(worker.waitForOutput(words, seconds: 90), "\(worker.outputSoFar)")
    #expect(try site.pushes().isEmpty)
  }

  @Test("an answer byte by byte opens the tunnel, and spans reach their collector through the proxy")
  func pieces() throws {
    let site = try Site()
    try site.startSimulator()
    let collector = try site.startCollector(["--certificate", site.certificates.server, "--key", site.certificates.serverKey])
    let proxy = try site.startFaultyProxy(["--pieces"])
    let traces = #"traces: "https://127.0.0.1:\#(collector.port)", tracesCA: "\#(site.certificates.authority)","#
    try site.configure(port: site.port, settings: setting(proxy.port) + traces)
    try site.declareTopology()
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    try site.publish([(#"{"to":"\#(token(1))"}"#, ["message_id": "m", "headers": ["traceparent": parent]])])
    try site.drain()
    #expect(try site.deliveries() == [token(1): 1])
    #expect(collector.process.waitForLines(2, seconds: 30))
    let tunnels = Site.objects(proxy.process.outputSoFar).compactMap { $0["tunnel"] as? String }
    #expect(Set(tunnels) == ["127.0.0.1:\(site.port)", "127.0.0.1:\(collector.port)"])
  }

  @Test("a proxy that stalls is given up in time, and the next tunnel is used")
  func stalled() throws {
    let site = try Site()
    try site.startSimulator()
    let proxy = try site.startFaultyProxy(["--stall", "1"])
    try site.configure(port: site.port, settings: setting(proxy.port) + #"retry: { steps: ["200ms"] },"#)
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    let worker = try site.startWorker()
    let words = "the proxy http://127.0.0.1:\(proxy.port) opens no tunnel to 127.0.0.1:\(site.port): timed out after 10 s"
    #expect(worker.waitForOutput(words, seconds: 90), "\(worker.outputSoFar)")
    #expect(try site.followJournal().waitForLines(1, seconds: 90))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1])
  }

  @Test("after an idle tunnel is cut, with or without a notice, the next push is delivered once", arguments: [false, true])
  func cut(isSilent: Bool) throws {
    let site = try Site()
    try site.startSimulator()
    let proxy = try site.startFaultyProxy(["--idle", "2"] + (isSilent ? ["--silent"] : []))
    try site.configure(port: site.port, settings: setting(proxy.port) + #"retry: { steps: ["200ms"] },"#)
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    let worker = try site.startWorker()
    #expect(proxy.process.waitForOutput(#""cut""#, seconds: 90))
    #expect(isSilent || worker.waitForOutput("provider connection ended", seconds: 30))
    try site.send(tokens: [token(2)])
    #expect(try site.followJournal().waitForOutput(token(2), seconds: 120), "\(worker.outputSoFar)")
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1, token(2): 1])
  }

  @Test("HTTPS_PROXY is used where no proxy is configured, except for the hosts of NO_PROXY")
  func environment() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    let proxy = try site.startFaultyProxy()
    let address = "http://127.0.0.1:\(proxy.port)"
    for (number, exceptions) in [(1, "push.test"), (2, "push.test,127.0.0.0/8")] {
      try site.send(tokens: [token(number)])
      try site.drain(environment: ["HTTPS_PROXY": address, "NO_PROXY": exceptions])
    }
    #expect(try site.deliveries() == [token(1): 1, token(2): 1])
    #expect(Site.objects(proxy.process.outputSoFar).compactMap { $0["tunnel"] as? String } == ["127.0.0.1:\(site.port)"])
  }
}
