import Foundation
import TestSupport
import Testing

@Suite("Credentials changed under load", .blocking)
struct RotationTests {
  @Test("key, service account, the broker's password and its address are replaced while pushes are sent, and none fails")
  func rotation() throws {
    let certificates = try TestCertificates.make()
    let broker = try Broker(certificates: (certificates.authority, certificates.server, certificates.serverKey))
    defer { broker.stop() }
    let site = try Site(broker: broker)
    try site.startSimulator()
    let fcm = try site.startFCM()
    func copy(_ path: String, to name: String) throws {
      try Data(contentsOf: URL(fileURLWithPath: path)).write(to: site.folder.appendingPathComponent(name))
    }
    func configure(keyID: String) throws {
      try site.write(
        """
        { brokerFile: "broker.secret", prefix: "\(site.prefix)", ca: "\(certificates.authority)",
          apps: { "\(Site.app)": { \(fcm) apns: { key: "key.p8", keyID: "\(keyID)", teamID: "DEF123GHIJ",
            endpoint: "https://127.0.0.1:\(site.port)", ca: "\(certificates.authority)" } } } }
        """, to: "pushfleet.json5")
    }
    try broker.addUser("worker", password: "first-secret")
    try copy(certificates.p8, to: "key.p8")
    try site.write("amqp://worker:first-secret@127.0.0.1:\(broker.port)\n", to: "broker.secret")
    try configure(keyID: "ABC123DEFG")
    var sent: [String] = []
    /// Publishes to equal numbers of iPhones and Android phones.
    func load(_ count: Int) throws {
      let fresh = (sent.count..<sent.count + count).flatMap { ["apns:\(token($0))", "fcm:device-\($0)"] }
      sent += fresh
      try site.publish(fresh.map { (["to": $0, "data": ["a": "b"]], [:]) })
    }
    try site.declareTopology()
    try load(300)
    let worker = try site.startWorker()

    // The worker notices the files itself.
    try copy(certificates.otherP8, to: "key.p8")
    try configure(keyID: "HIJ456KLMN")
    #expect(worker.waitForOutput("\(Site.app) APNs production", seconds: 90))
    try load(100)
    var account = try #require(Site.objects(try String(contentsOfFile: site.file("account.json"), encoding: .utf8)).first)
    account["private_key_id"] = "4567cdef"
    try JSONSerialization.data(withJSONObject: account).write(to: site.folder.appendingPathComponent("account.json"))
    #expect(worker.waitForOutput("\(Site.app) FCM", seconds: 90))
    try load(100)

    // From plain text to TLS, with another password; then every connection is cut.
    let reloads = worker.outputSoFar.ranges(of: #""message":"reloaded""#).count
    try site.write("amqps://worker:second-secret@127.0.0.1:\(broker.tlsPort)\n", to: "broker.secret")
    #expect(worker.waitForOutput(#""message":"reloaded""#, times: reloads + 1, seconds: 90))
    try broker.changePassword(of: "worker", to: "second-secret")
    let connections = worker.outputSoFar.ranges(of: #""message":"consuming""#).count
    try broker.control("close_all_connections", "rotation")
    #expect(worker.waitForOutput(#""message":"consuming""#, times: connections + 1, seconds: 90))
    let ways = try broker.control("list_connections", "user", "ssl").split(separator: "\n").filter { $0.hasPrefix("worker") }
    #expect(!ways.isEmpty && ways.allSatisfy { $0.hasSuffix("true") }, "\(ways)")
    try load(100)

    func answered() throws -> [String: Int] {
      let android = Site.objects(try String(contentsOfFile: site.file("fcm.ndjson"), encoding: .utf8))
        .filter { ($0["answer"] as? [String: Any])?["status"] as? Int == 200 }
        .compactMap { ($0["token"] as? String).map { "fcm:\($0)" } }.filter { $0.hasPrefix("fcm:device-") }
      let all = try site.deliveries().map { ("apns:\($0.key)", $0.value) } + android.map { ($0, 1) }
      return Dictionary(all, uniquingKeysWith: +)
    }
    #expect(try eventually { try answered().count == sent.count })
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try answered() == Dictionary(uniqueKeysWithValues: sent.map { ($0, 1) }))
    #expect(try site.depths(["send.normal", "dead", "feedback"]) == [0, 0, 0])
    let keys = try String(contentsOfFile: site.file("journal.ndjson"), encoding: .utf8)
    #expect(keys.contains("ABC123DEFG") && keys.contains("HIJ456KLMN"))
    #expect(!worker.outputSoFar.contains("-secret"))
  }

  @Test("a gateway connects to another broker after a reload, and watches the file of the broker's authority")
  func gateway() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    let good = """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)", registry: "sqlite:registry.db", ca: "ca.pem",
        gateway: { http: { listen: "127.0.0.1:\(port)" } }, apps: { "\(Site.app)": { apns: \(site.apns(port: Int(port))) } } }
      """
    let gone = good.replacing(site.brokerURI, with: "amqp://127.0.0.1:\(try FreePorts.take(1)[0])")
    let authority = try String(contentsOfFile: site.certificates.authority, encoding: .utf8)
    try site.write(authority, to: "ca.pem")
    try site.write(gone, to: "pushfleet.json5")
    let gateway = try site.start(["gateway", "--config", site.file("pushfleet.json5")])
    #expect(gateway.waitForOutput("no broker connection", seconds: 90), "\(gateway.outputSoFar)")
    try site.write(authority + "\n", to: "ca.pem")
    #expect(gateway.waitForOutput(#""reloading""#, seconds: 90))
    try site.write(good, to: "pushfleet.json5")
    #expect(gateway.waitForOutput(#""publishing""#, seconds: 90))
    #expect(!gateway.outputSoFar.contains("only after a restart"))
    gateway.signal(15)
    #expect(gateway.wait() == 0)
  }

  @Test("on SIGHUP an unusable file is named, the old one stays in use, and pushes continue")
  func refused() throws {
    let site = try Site()
    try site.startSimulator()
    let config = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    let key = site.folder.appendingPathComponent("key.p8")
    try Data(contentsOf: URL(fileURLWithPath: site.certificates.p8)).write(to: key)
    try site.write(config.replacing(site.certificates.p8, with: key.path), to: "pushfleet.json5")
    try site.declareTopology()
    let worker = try site.startWorker()
    try Data("no key at all".utf8).write(to: key)
    worker.signal(1)
    #expect(worker.waitForOutput("apps.com.example.app.apns.key cannot be used", seconds: 90))
    try site.write("{ broker: ", to: "pushfleet.json5")
    worker.signal(1)
    #expect(worker.waitForOutput("the old configuration stays in force", seconds: 90))
    try site.write(
      config.replacing("broker:", with: "prefetch: 7, broker:").replacing(site.certificates.p8, with: key.path),
      to: "pushfleet.json5")
    #expect(worker.waitForOutput(#""other changed settings need a restart","settings":["prefetch"]"#, seconds: 90))
    let journal = try site.followJournal()
    try site.publish([(["to": token(1), "data": ["a": "b"]], [:])])
    #expect(journal.waitForLines(1, seconds: 90))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1])
  }
}
