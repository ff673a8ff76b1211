import Foundation
import TestSupport
import Testing

/// Checks of the gateway's settings before it runs, and when it can't.
@Suite("Checks of the gateway's doors", .blocking)
struct DoorCheckTests {
  private struct Case {
    var what: String
    var gateway: String
    var registry = #"registry: "sqlite:registry.db","#
    /// The finding's key.
    var key: String
    var words: String
    /// The gateway starts nevertheless.
    var isStarted = false
  }

  private static func configure(_ site: Site, _ gateway: String, _ more: String) throws {
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", \(more)
        gateway: { \(gateway) },
        apps: { "\(Site.app)": { apns: \(site.apns(port: 8443)) } },
      }
      """, to: "pushfleet.json5")
  }

  @Test("config check, doctor and the gateway itself name an unusable setting with the reason")
  func settings() throws {
    let site = try Site()
    let made = site.certificates
    let ports = try FreePorts.take(2)
    let http = #"listen: "127.0.0.1:\#(ports[0])""#
    let apns = #"listen: "127.0.0.1:\#(ports[1])""#
    func tls(_ certificate: String, _ key: String) -> String { #"certificate: "\#(certificate)", key: "\#(key)""# }
    let good = tls(made.server, made.serverKey)
    try site.write("no PEM", to: "text.pem")
    let cases = [
      Case(what: "no registry", gateway: "http: { \(http) }", registry: "", key: "registry", words: "name one, such as"),
      Case(
        what: "no file", gateway: "http: { \(http), \(tls("gone.pem", made.serverKey)) }", key: "gateway.http.certificate",
        words: "No such file"),
      Case(
        what: "no certificate in it", gateway: "http: { \(http), \(tls("text.pem", made.serverKey)) }",
        key: "gateway.http.certificate", words: "holds no certificate in PEM form"),
      Case(
        what: "no key in it", gateway: "http: { \(http), \(tls(made.server, "text.pem")) }", key: "gateway.http.key",
        words: "holds no private key in PEM form"),
      Case(
        what: "another's key", gateway: "http: { \(http), \(tls(made.server, made.clientKey)) }",
        key: "gateway.http.certificate", words: "the private key does not belong to the certificate"),
      Case(
        what: "a key with a passphrase", gateway: "http: { \(http), \(tls(made.client, made.clientEncryptedKey)) }",
        key: "gateway.http.key", words: "needs a passphrase"),
      Case(
        what: "expired", gateway: "http: { \(http), \(tls(made.expired, made.expiredKey)) }", key: "gateway.http.certificate",
        words: "has expired (20", isStarted: true),
      Case(
        what: "no authority of senders", gateway: #"apns: { \#(apns), \#(good), clients: "gone.pem" }"#,
        key: "gateway.apns.clients", words: "No such file"),
      Case(
        what: "no certificate of an authority", gateway: #"apns: { \#(apns), \#(good), clients: "text.pem" }"#,
        key: "gateway.apns.clients", words: "certificate"),
      Case(
        what: "neither senders nor application", gateway: "apns: { \(apns), \(good) }", key: "gateway.apns.clients",
        words: "must be set, but not both"),
      Case(
        what: "an unknown application", gateway: #"apns: { \#(apns), \#(good), app: "com.example.none" }"#,
        key: "gateway.apns.app", words: "must be an application with settings for APNs"),
      Case(
        what: "expired for old senders",
        gateway: #"apns: { \#(apns), \#(tls(made.expired, made.expiredKey)), app: "\#(Site.app)" }"#,
        key: "gateway.apns.certificate", words: "has expired (20", isStarted: true),
      Case(
        what: "one place twice", gateway: #"metrics: "127.0.0.1:\#(ports[0])", http: { \#(http) }"#, key: "gateway.metrics",
        words: "which gateway.http.listen uses, too", isStarted: true),
    ]
    for one in cases {
      try Self.configure(site, one.gateway, one.registry)
      let configuration = site.file("pushfleet.json5")
      let checked = try site.run(["config", "check", configuration, "--json"])
      let found = Site.objects(checked.output).first { $0["key"] as? String == one.key }
      #expect(
        checked.status == 78 && (found?["problem"] as? String)?.contains(one.words) == true, "\(one.what): \(checked.output)")
      #expect(one.key == "registry" || found?["line"] as? Int == 3, "\(one.what): \(checked.output)")
      let looked = try site.run(["doctor", "--config", configuration])
      #expect(looked.status == 78 && looked.output.contains(one.words), "\(one.what): \(looked.output)")
      guard !one.isStarted else { continue }
      let started = try site.run(["gateway", "--config", configuration])
      #expect(
        started.status == 78 && started.output.contains(one.key) && started.output.contains(one.words),
        "\(one.what): \(started.output)")
    }
    try Self.configure(site, "http: { \(http), \(good) }, apns: { \(apns), \(good), app: \"\(Site.app)\" }", cases[1].registry)
    #expect(try site.run(["config", "check", site.file("pushfleet.json5")]).status == 0)
    let looked = try site.run(["doctor", "--config", site.file("pushfleet.json5"), "--json"]).output
    for setting in ["gateway.http.certificate", "gateway.apns.certificate"] {
      let found = Site.objects(looked).first { $0["about"] as? String == setting }
      #expect(
        found?["level"] as? String == "warning" && (found?["finding"] as? String)?.hasPrefix("ends on 20") == true, "\(looked)")
    }
  }

  @Test("doctor says if the ports are free, or who uses them, and if any key exists")
  func places() throws {
    let site = try Site()
    let ports = try FreePorts.take(2)
    try site.startFleet(
      settings:
        #"gateway: { metrics: "127.0.0.1:\#(ports[1])", http: { listen: "127.0.0.1:\#(ports[0])" } },"#)
    func findings(_ status: Int32) throws -> [String] {
      let ended = try site.run(["doctor", "--config", site.file("pushfleet.json5"), "--json"])
      #expect(ended.status == status, "\(ended.output)")
      return Site.objects(ended.output).map { "\($0["level"] ?? "") \($0["about"] ?? "") \($0["finding"] ?? "")" }
    }
    let (door, figures) = ("gateway.http.listen 127.0.0.1:\(ports[0])", "gateway.metrics 127.0.0.1:\(ports[1])")
    try site.importDevices([1], #""user":"u""#)
    let before = try findings(0)
    #expect(before.contains("ok \(door) free") && before.contains("ok \(figures) free"), "\(before)")
    #expect(before.contains("warning gateway.http there is no key: every sender is refused"))

    let gateway = try Door(site, port: ports[0])
    _ = try gateway.key()
    let running = try findings(0)
    #expect(
      running.contains("ok \(door) a gateway is there") && running.contains("ok gateway.http 1 key opens it"), "\(running)")
    #expect(running.contains("ok \(figures) a gateway is there"), "\(running)")
    // A second gateway finds no free port, and says which.
    let second = try site.run(["gateway", "--config", site.file("pushfleet.json5")])
    #expect(
      second.status == 69 && second.output.contains("gateway.http.listen can't be used now: 127.0.0.1:\(ports[0]) is in use")
        && second.output.contains("(a console has --listen)"))
    gateway.gateway.signal(15)
    #expect(gateway.gateway.wait() == 0)

    let stranger = try ChildProcess(
      ["/usr/bin/python3", "-m", "http.server", "\(ports[0])", "--bind", "127.0.0.1"], environment: ["PATH": "/usr/bin:/bin"],
      output: "/dev/null")
    defer { stranger.end() }
    #expect(eventually { HTTPProbe(port: ports[0]).ask("/") != nil })
    let taken = try findings(78)
    #expect(taken.contains("error \(door) in use by something that is no gateway"), "\(taken)")
    try site.configureFleet(
      "sqlite:registry.db", settings: #"gateway: { http: { listen: "192.0.2.1:\#(ports[1])" } },"#)
    #expect(try findings(0).contains("warning gateway.http.listen 192.0.2.1:\(ports[1]) this machine has no such address"))
  }

  @Test("doctor warns about a TLS door with another program, and not about a gateway's")
  func tlsAlone() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    let (certificate, key) = (site.certificates.server, site.certificates.serverKey)
    try site.startFleet(
      settings:
        #"gateway: { http: { listen: "127.0.0.1:\#(port)", certificate: "\#(certificate)", key: "\#(key)" } },"#)
    let gateway = try site.start(["gateway", "--config", site.file("pushfleet.json5")])
    #expect(gateway.waitForOutput(#""publishing""#, seconds: 90))
    func said() throws -> String {
      let looked = try site.run(["doctor", "--config", site.file("pushfleet.json5"), "--json"]).output
      let found = Site.objects(looked).first { ($0["about"] as? String)?.hasPrefix("gateway.http.listen") == true }
      return "\(found?["level"] ?? "") \(found?["finding"] ?? "")"
    }
    let good = try said()
    #expect(good.hasPrefix("ok in use"), "\(good)")
    gateway.signal(15)
    #expect(gateway.wait() == 0)
    let stranger = try ChildProcess(
      ["/usr/bin/python3", "-m", "http.server", "\(port)", "--bind", "127.0.0.1"], environment: ["PATH": "/usr/bin:/bin"],
      output: "/dev/null")
    defer { stranger.end() }
    #expect(eventually { HTTPProbe(port: port).ask("/") != nil })
    let bad = try said()
    #expect(bad.hasPrefix("warning in use by python3"), "\(bad)")
  }

  @Test("a worker and a gateway with one configuration have separate metrics ports")
  func figures() throws {
    let site = try Site()
    let ports = try FreePorts.take(4)
    try site.startFleet(
      settings: #"metrics: "127.0.0.1:\#(ports[0])", gateway: { http: { listen: "127.0.0.1:\#(ports[1])", wait: 0 } },"#)
    let worker = try site.startWorker()
    // Without its own port the gateway works, and says what is missing.
    let lacking = try Door(site, port: ports[1])
    #expect(lacking.gateway.waitForOutput("gateway.metrics", seconds: 90))
    lacking.gateway.signal(15)
    #expect(lacking.gateway.wait() == 0)

    let own = [
      "PUSHFLEET_GATEWAY_METRICS": "127.0.0.1:\(ports[2])", "PUSHFLEET_GATEWAY_APNS_LISTEN": "127.0.0.1:\(ports[3])",
      "PUSHFLEET_GATEWAY_APNS_CERTIFICATE": site.certificates.server,
      "PUSHFLEET_GATEWAY_APNS_KEY": site.certificates.serverKey, "PUSHFLEET_GATEWAY_APNS_APP": Site.app,
    ]
    let gateway = try site.start(["gateway", "--config", site.file("pushfleet.json5")], environment: own)
    let (workers, gateways) = (HTTPProbe(port: ports[0]), HTTPProbe(port: ports[2]))
    #expect(eventually { gateways.ask("/readyz")?.status == 200 })
    #expect(workers.ask("/metrics")?.body.contains("pushfleet_pushes_delivered_total") == true)
    #expect(gateways.ask("/metrics")?.body.contains("pushfleet_gateway_ready 1") == true)
    #expect(HTTPProbe(port: ports[1]).ask("/nothing")?.status == 404)
    // Its certificate ends within thirty days.
    #expect(gateway.waitForOutput("certificate expires soon", seconds: 90))
    let expiry = #"pushfleet_credential_not_after_timestamp_seconds{credential="gateway.apns.certificate"} "#
    #expect(gateways.ask("/metrics")?.body.contains(expiry) == true)
    let page = try #require(gateways.ask("/"))
    #expect(page.status == 200 && page.body.contains("the console at /console/"))
    #expect(gateways.ask("/metrics")?.body.contains(#"pushfleet_gateway_answers_total{status="404"} 1"#) == true)
    for child in [gateway, worker] {
      child.signal(15)
      #expect(child.wait() == 0)
    }
  }
}
