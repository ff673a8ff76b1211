import Foundation
import TestSupport
import Testing

/// A gateway with TLS doors and its own certificates, without a broker.
final class CertifiedGateway {
  let certificates: TestCertificates
  let folder: URL
  /// The ports of the HTTP door, the binary interface and its feedback service.
  let ports: [UInt16]
  let gateway: ChildProcess

  /// - Parameter descriptors: the limit of open files.
  init(descriptors: Int? = nil) throws {
    certificates = try TestCertificates.make()
    folder = FileManager.default.temporaryDirectory.appending(path: "pushfleet-doors-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    ports = try FreePorts.take(4)
    let configuration = """
      { broker: "amqp://guest:guest@127.0.0.1:\(ports[3])/", registry: "sqlite:registry.db",
        gateway: {
          http: { listen: "127.0.0.1:\(ports[0])", certificate: "server.pem", key: "server.key" },
          apns: { listen: "127.0.0.1:\(ports[1])", feedback: "127.0.0.1:\(ports[2])", certificate: "server.pem", key: "server.key", clients: "clients.pem" } },
        apps: { "com.example.app": { apns: { key: "\(certificates.p8)", keyID: "ABC123DEFG", teamID: "DEF123GHIJ",
          topic: "com.example.app" } } } }
      """
    let path = folder.appending(path: "pushfleet.json5").path
    try Data(configuration.utf8).write(to: URL(filePath: path))
    for (name, source) in [
      ("server.pem", certificates.server), ("server.key", certificates.serverKey), ("clients.pem", certificates.authority),
    ] {
      try FileManager.default.copyItem(atPath: source, toPath: folder.appending(path: name).path)
    }
    let limit = descriptors.map { "ulimit -n \($0); " } ?? ""
    gateway = try ChildProcess(
      ["/bin/sh", "-c", limit + "exec \"$0\" \"$@\"", Program.path, "gateway", "--config", path],
      environment: ["PATH": "/usr/bin:/bin"], output: nil)
    guard gateway.waitForOutput("feedback service is open", seconds: 90) else { throw Broken(gateway.outputSoFar) }
  }

  deinit {
    gateway.end()
    try? FileManager.default.removeItem(at: folder)
  }

  /// Replaces files and makes the gateway reload.
  func replace(_ files: [(name: String, text: String)]) throws {
    for (name, text) in files { try Data(text.utf8).write(to: folder.appending(path: name), options: .atomic) }
    gateway.signal(SIGHUP)
  }

  func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

  /// The SHA-256 of a door's certificate, or the reason why there was none.
  func shown(_ door: Int) throws -> String {
    let child = try client(door, #"print(hashlib.sha256(link.getpeercert(True)).hexdigest(), end="")"#)
    _ = child.wait()
    return child.outputSoFar
  }

  /// A Python client that completes the handshake with a door and uses the `link`; it prints why it can't.
  /// - Parameter setting: for its `context`.
  func client(_ door: Int, _ use: String, setting: String = "") throws -> ChildProcess {
    let code = """
      import hashlib, socket, ssl, sys
      context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
      context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
      context.load_cert_chain(sys.argv[2], sys.argv[3])
      \(setting)
      try:
          with context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)) as link:
              \(use)
      except ssl.SSLError as error:
          print(error.reason, end="")
      except OSError as error:
          print(error, end="")
      """
    return try ChildProcess(
      ["/usr/bin/python3", "-W", "ignore", "-c", code, "\(ports[door])", certificates.client, certificates.clientKey],
      environment: ["PATH": "/usr/bin:/bin"], output: nil)
  }
}

@Suite("Certificates of the gateway's doors", .blocking)
struct DoorCertificatesTests {
  @Test("are replaced while the gateway runs; unusable ones leave the old ones in use and are reported")
  func reloaded() throws {
    let site = try CertifiedGateway()
    let first = try [0, 1].map(site.shown)
    #expect(first[0].count == 64 && first[0] == first[1])

    let (certificate, key) = (site.certificates.selfSigned, site.certificates.selfSignedKey)
    try site.replace([("server.pem", site.text(certificate)), ("server.key", site.text(key))])
    #expect(try eventually { try [0, 1].allSatisfy { try site.shown($0).count == 64 && site.shown($0) != first[0] } })
    let second = try site.shown(0)
    #expect(try site.shown(1) == second)

    // Invalid text, and another certificate's key.
    try site.replace([("server.pem", "nonsense")])
    #expect(site.gateway.waitForOutput("the old certificate stays in use", times: 2, seconds: 90))
    try site.replace([("server.pem", site.text(site.certificates.server))])
    #expect(site.gateway.waitForOutput("the private key does not belong to the certificate", times: 2, seconds: 90))
    #expect(try site.shown(0) == second && site.shown(1) == second)

    // Another authority of senders: the previous one is no longer valid.
    try site.replace([
      ("server.pem", site.text(certificate)), ("clients.pem", site.text(site.certificates.otherAuthority)),
    ])
    #expect(try eventually { try site.shown(1).count != 64 })
    #expect(try site.shown(0) == second)

    // Another application, and a setting that needs a restart.
    let settings = try site.text(site.folder.appending(path: "pushfleet.json5").path)
    let others = settings.replacing(#""com.example.app": {"#, with: #""com.example.other": {"#)
      .replacing("http: {", with: "http: { wait: 3,")
    try site.replace([("clients.pem", site.text(site.certificates.authority)), ("pushfleet.json5", others)])
    #expect(site.gateway.waitForOutput(#"["gateway.http.wait"]"#, seconds: 90))
    #expect(try site.shown(1) == second)
    #expect(site.gateway.waitForOutput("belongs to no application", seconds: 90))
    site.gateway.signal(SIGTERM)
    #expect(site.gateway.wait() == 0)
  }

  @Test("allow TLS 1.2 and 1.3 on the HTTP door, with authenticated encryption only")
  func versions() throws {
    let site = try CertifiedGateway()
    func spoken(_ version: String, _ ciphers: String = "ALL") throws -> String {
      let child = try site.client(
        0, "print(link.version(), link.cipher()[0], end='')",
        setting: """
          context.set_ciphers("\(ciphers):@SECLEVEL=0")
          context.minimum_version = context.maximum_version = ssl.TLSVersion.\(version)
          """)
      _ = child.wait()
      return child.outputSoFar
    }
    for version in ["TLSv1", "TLSv1_1"] { #expect(try !spoken(version).hasPrefix("TLSv1"), "\(version)") }
    #expect(try !spoken("TLSv1_2", "AES256-SHA:ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA384").hasPrefix("TLSv1"))
    #expect(try spoken("TLSv1_2").hasPrefix("TLSv1.2 ECDHE-"))
    #expect(try spoken("TLSv1_3").hasPrefix("TLSv1.3 TLS_AES_256_GCM"))
  }
}
