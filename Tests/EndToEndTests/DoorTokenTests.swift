import Foundation
import TestSupport
import Testing

/// The token endpoint, with assertions signed by the openssl program, and keys that name their sender.
@Suite("Service accounts and senders of the gateway's keys", .blocking)
struct DoorTokenTests {
  private struct Account {
    let id: String
    let project: String
    let email: String
    let tokenURI: String
    let keyFile: String

    init(_ site: Site, _ name: String = "sender.json", _ options: [String] = []) throws {
      let file = site.file(name)
      let ended = try site.run(
        [
          "keys", "create", "--config", site.file("pushfleet.json5"), "--rights", "send", "--service-account", file, "--json",
        ] + options)
      id = try #require(Site.objects(ended.output).first?["id"] as? String, "\(ended)")
      #expect(!ended.output.contains("pf1k~"))
      let text = try Data(contentsOf: URL(fileURLWithPath: file))
      let object = try #require(try JSONSerialization.jsonObject(with: text) as? [String: String])
      #expect(object["type"] == "service_account")
      #expect((try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int) == 0o600)
      (project, email) = (object["project_id"] ?? "", object["client_email"] ?? "")
      tokenURI = object["token_uri"] ?? ""
      keyFile = try site.write(object["private_key"] ?? "", to: name + ".pem")
    }
  }

  /// - Parameter change: of header and claims, before they are signed.
  private func assertion(
    _ site: Site, _ account: Account, signedWith key: String? = nil,
    _ change: (_ header: inout [String: Any], _ claims: inout [String: Any]) -> Void = { _, _ in }
  ) throws -> String {
    let now = Int(Date().timeIntervalSince1970)
    var header: [String: Any] = ["alg": "RS256", "typ": "JWT", "kid": account.id]
    var claims: [String: Any] = [
      "iss": account.email, "sub": account.email, "aud": account.tokenURI, "iat": now, "exp": now + 3_600,
      "scope": "https://www.googleapis.com/auth/firebase.messaging",
    ]
    change(&header, &claims)
    func encode(_ data: Data) -> String {
      data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
    let signed = try [header, claims].map { encode(try JSONSerialization.data(withJSONObject: $0)) }.joined(separator: ".")
    let (text, signature) = (try site.write(signed, to: "signed"), site.file("signature"))
    try site.foreign(["/usr/bin/openssl", "dgst", "-sha256", "-sign", key ?? account.keyFile, "-out", signature, text])
    return signed + "." + encode(try Data(contentsOf: URL(fileURLWithPath: signature)))
  }

  private static let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"

  private func ask(_ door: Door, _ assertion: String, grant: String = Self.grant)
    throws
    -> HTTPProbe.Answer
  {
    try door.ask(
      "POST", "/token", nil, "grant_type=\(grant)&assertion=\(assertion)", ["Content-Type": "application/x-www-form-urlencoded"]
    )
  }

  @Test("an assertion is exchanged for a token that is valid for its key until the key is revoked, at every gateway")
  func traded() throws {
    let site = try Site()
    let ports = try FreePorts.take(2)
    try site.startFleet(settings: Door.settings(ports[0]))
    let door = try Door(site, port: ports[0])
    let worker = try site.startWorker()
    let account = try Account(site)
    #expect(account.project == Site.app && account.tokenURI == "http://127.0.0.1:\(ports[0])/token")

    let answer = try ask(door, try assertion(site, account))
    let object = try #require(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
    #expect(answer.status == 200 && answer.headers["cache-control"] == "no-store", "\(answer)")
    #expect(object["expires_in"] as? Int == 3_600 && object["token_type"] as? String == "Bearer" && object.count == 3)
    let access = try #require(object["access_token"] as? String)

    func send(_ access: String, _ door: Door) throws -> HTTPProbe.Answer {
      try door.ask(
        "POST", "/v1/projects/\(account.project)/messages:send", nil,
        #"{"message":{"token":"\#(token(1))","data":{"n":"\#(UUID().uuidString)"}}}"#,
        ["Authorization": "Bearer \(access)"])
    }
    #expect(try send(access, door).status == 200)
    try site.write(
      try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8).replacing("\(ports[0])", with: "\(ports[1])"),
      to: "pushfleet.json5")
    let other = try Door(site, port: ports[1])
    #expect(try send(access, other).status == 200)
    #expect(try site.deliveries() == [token(1): 2])
    // It has the rights of its key.
    let registers = try door.ask("GET", "/iid/info/x", nil, nil, ["Authorization": "Bearer \(access)"])
    #expect(registers.status == 403)
    let parts = access.split(separator: "~").map(String.init)
    for altered in [
      parts[0] + "~" + parts[1] + "~" + String((Int(parts[2]) ?? 0) + 1) + "~" + parts[3], String(access.dropLast()),
      "pf1t~" + parts[1] + "~" + parts[2], access + "~",
    ] {
      #expect(try send(altered, door).status == 401)
    }
    #expect(try site.run(["keys", "revoke", account.id, "--config", site.file("pushfleet.json5")]).status == 0)
    #expect(try eventually { try [door, other].allSatisfy { try send(access, $0).status == 401 } })
    #expect(try ask(door, try assertion(site, account)).status == 400)
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(!door.gateway.outputSoFar.contains(access))
  }

  @Test("an assertion with any wrong claim is refused after a second; those of Google's libraries are accepted")
  func assertions() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port))
    let door = try Door(site, port: port)
    let (account, stranger) = (try Account(site), try Account(site, "other.json", ["--url", "https://push.example.com/x/"]))
    #expect(stranger.tokenURI == "https://push.example.com/x/token")
    let now = Int(Date().timeIntervalSince1970)
    typealias Change = (inout [String: Any], inout [String: Any]) -> Void
    let good: [Change] = [
      { _, claims in claims["aud"] = "https://oauth2.googleapis.com/token" },
      { _, claims in claims["sub"] = nil },
      { header, claims in
        header["kid"] = nil
        claims["iat"] = Double(now) - 200.5
        claims["exp"] = now + 3_000
      },
      { _, claims in
        claims["iat"] = now + 200
        claims["exp"] = now + 3_800
      },
    ]
    for (index, change) in good.enumerated() {
      let answer = try ask(door, try assertion(site, account, change))
      #expect(answer.status == 200, "\(index): \(answer)")
    }
    let bad: [Change] = [
      { _, claims in claims["aud"] = stranger.tokenURI },
      { _, claims in claims["aud"] = nil },
      { _, claims in claims["sub"] = "somebody@example.com" },
      { _, claims in claims["iss"] = stranger.email },
      { _, claims in claims["iss"] = "AAAAAAAAAAAA@x" },
      { _, claims in claims["iat"] = nil },
      { _, claims in claims["exp"] = "\(now + 60)" },
      { _, claims in claims["exp"] = now - 1 },
      { _, claims in claims["exp"] = now + 3_700 },
      { _, claims in claims["exp"] = 1e300 },
      { _, claims in
        claims["iat"] = now + 400
        claims["exp"] = now + 500
      },
      { header, _ in header["alg"] = "none" },
      { header, _ in header["alg"] = "HS256" },
    ]
    // Together, as each takes a second.
    let group = DispatchGroup()
    let answers = Answers()
    let began = ContinuousClock.now
    var forms = try bad.map { try assertion(site, account, $0) }
    forms += [try assertion(site, account, signedWith: stranger.keyFile), "a.b.c", ""]
    for form in forms {
      DispatchQueue.global().async(group: group) {
        let answer = HTTPProbe(port: port).ask(
          "/token", method: "POST", body: "grant_type=\(Self.grant)&assertion=\(form)", seconds: 60)
        answers.add(form, answer)
      }
    }
    group.wait()
    for (form, answer) in answers.all {
      let isOwn = answer?.status == 400 && answer?.body.hasPrefix(#"{"error":"invalid_grant","error_description""#) == true
      #expect(isOwn, "\(form): \(String(describing: answer))")
    }
    #expect(answers.all.count == forms.count && ContinuousClock.now - began > .milliseconds(900))
    #expect(try ask(door, "", grant: "password").body.hasPrefix(#"{"error":"unsupported_grant_type""#))
    #expect(try door.ask("GET", "/token", nil).status == 405)
  }

  private final class Answers: @unchecked Sendable {
    private let lock = NSLock()
    private var answers: [(String, HTTPProbe.Answer?)] = []
    var all: [(String, HTTPProbe.Answer?)] { lock.withLock { answers } }
    func add(_ form: String, _ answer: HTTPProbe.Answer?) { lock.withLock { answers.append((form, answer)) } }
  }

  @Test("the commands refuse contradictory options, and overwrite no file")
  func commands() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startFleet(settings: Door.settings(port))
    let create = ["keys", "create", "--config", site.file("pushfleet.json5"), "--rights", "send"]
    _ = try Account(site)
    for (words, status) in [
      (["--service-account", site.file("sender.json")], 65), (["--url", "http://x"], 64), (["--sender", "9"], 65),
      (["--environment", "sandbox"], 65), (["--environment", "moon"], 64),
      (["--service-account", site.file("new.json"), "--url", "ftp://x"], 64),
    ] as [([String], Int32)] {
      let ended = try site.run(create + words)
      #expect(ended.status == status, "\(words): \(ended)")
    }
    #expect(!FileManager.default.fileExists(atPath: site.file("new.json")))
  }

  @Test("requests with a key are its sender's, and its tokens those of its environment")
  func senders() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startSimulator()
    let sandbox = try site.startAPNs("sandbox")
    let own = try site.startAPNs("own")
    try site.configureFleet("sqlite:registry.db", settings: Door.settings(port))
    let apns = site.apns()
    try site.write(
      try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8).replacing(
        "apns: \(apns),",
        with: """
          apns: [\(site.apns("environment: \"production\",")), \(site.apns("environment: \"sandbox\",", port: sandbox.port))],
          senders: { "812345": { apns: \(site.apns(port: own.port)) } },
          """), to: "pushfleet.json5")
    try site.declareTopology()
    let door = try Door(site, port: port)
    let worker = try site.startWorker()
    let (plain, test) = (try door.key().key, try door.key("send,register", ["--environment", "sandbox"]))
    let sender = try door.key("send,register", ["--sender", "812345"]).key
    func sends(_ key: String, to target: String) throws {
      let one = try door.json("POST", "/fcm/send", key, #"{"to":"\#(target)","data":{"n":"\#(UUID().uuidString)"}}"#)
      #expect(one["success"] as? Int ?? 1 == 1, "\(one)")
    }
    func got(_ journal: String) throws -> [String] {
      Site.objects((try? String(contentsOfFile: site.file("\(journal).ndjson"), encoding: .utf8)) ?? "").compactMap {
        $0["token"] as? String
      }
    }
    for (index, key) in [plain, test.key, sender].enumerated() { try sends(key, to: token(index + 1)) }
    #expect(try got("journal") == [token(1)] && got("sandbox") == [token(2)] && got("own") == [token(3)])
    _ = try door.json(
      "POST", "/v1/projects/p/messages:send", test.key, #"{"message":{"token":"\#(token(4))","data":{"n":"1"}}}"#)
    // Devices that they register are theirs too, for any sender.
    for (number, key) in [(5, test.key), (6, sender)] {
      let add = #"{"to":"/topics/news","registration_tokens":["\#(token(number))"]}"#
      _ = try door.json("POST", "/iid/v1:batchAdd", key, add)
    }
    try sends(plain, to: "/topics/news")
    #expect(try eventually { try got("sandbox") == [2, 4, 5].map(token) && got("own") == [3, 6].map(token) })
    let listed = Site.objects(try site.run(["keys", "list", "--config", site.file("pushfleet.json5"), "--json"]).output)
    #expect(listed.first { $0["id"] as? String == test.id }?["environment"] as? String == "sandbox")
    #expect(listed.compactMap { $0["sender"] as? String } == ["812345"])
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
