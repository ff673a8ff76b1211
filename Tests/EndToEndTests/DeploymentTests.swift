import Foundation
import TestSupport
import Testing

@Suite("The deployment files", .blocking)
struct DeploymentTests {
  private static func ended(_ command: [String], _ site: Site) throws -> (status: Int32, output: String) {
    let log = site.file("command-\(UUID().uuidString)")
    let child = try ChildProcess(command, environment: ["PATH": "/usr/bin:/bin"], output: log)
    return (child.wait(), try String(contentsOfFile: log, encoding: .utf8))
  }

  @Test(
    "docker-compose.yml has, with the files of make-secrets, everything that its configuration needs, and its simulators accept it"
  )
  func secrets() throws {
    let site = try Site()
    let folder = site.file("secrets")
    let script = DocumentTests.root.appending(path: "deploy/compose/make-secrets").path
    for word in ["made", "kept"] {
      let made = try Self.ended([script, folder], site)
      #expect(made.status == 0 && made.output.contains("\(word) \(folder)"), "\(made.output)")
    }
    let names = Set(try FileManager.default.contentsOfDirectory(atPath: folder))
    let modes = try names.map { try FileManager.default.attributesOfItem(atPath: "\(folder)/\($0)")[.posixPermissions] as? Int }
    #expect(modes.allSatisfy { $0 == 0o444 } && !names.contains("ca.key"))
    #expect(try FileManager.default.attributesOfItem(atPath: folder)[.posixPermissions] as? Int == 0o700)

    // Docker mounts them under the names of docker-compose.yml.
    let compose = try DocumentTests.text("docker-compose.yml")
    let secrets = compose.matches(of: /\n  ([a-z_]+): \{ file: deploy\/compose\/secrets\/([^ ]+) \}/).map { ($0.1, $0.2) }
    #expect(secrets.count == 11 && Set(secrets.map { String($0.1) }).isSubset(of: names))
    var config = try DocumentTests.text("deploy/compose/config.json5")
    for (name, file) in secrets { config = config.replacing("\"/run/secrets/\(name)\"", with: "\"\(folder)/\(file)\"") }
    #expect(!config.contains("/run/secrets"))
    // RabbitMQ's file has the passwords that the others are given.
    let passwords = try ["broker", "gateway-broker", "webhooks-broker", "operator-password", "console-broker"].map { name in
      let text = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8).trimmingCharacters(
        in: .whitespacesAndNewlines)
      return text.firstMatch(of: /pushfleet-[a-z]+:([0-9a-f]+)@/).map { String($0.1) } ?? text
    }
    let check = """
      import base64, hashlib, json, sys
      users = {user["name"]: user for user in json.load(open(sys.argv[1]))["users"]}
      for name, password in zip(["worker", "gateway", "webhooks", "operator", "operator"], sys.argv[2:]):
          kept = base64.b64decode(users["pushfleet-" + name]["password_hash"])
          assert kept[4:] == hashlib.sha256(kept[:4] + password.encode()).digest(), name
      assert users["billing"]["password_hash"] == "" and not any("administrator" in user["tags"] for user in users.values())
      """
    let compared = try ChildProcess.run(
      ["/usr/bin/python3", "-c", check, "\(folder)/rabbitmq-definitions.json"] + passwords)
    #expect(compared.0 == 0, "\(compared.1)")

    let broker = ["PUSHFLEET_BROKER_FILE": "\(folder)/broker"]
    try site.write(config, to: "compose.json5")
    let checked = try site.run(["config", "check", site.file("compose.json5")], environment: broker)
    #expect(checked.status == 0 && checked.output.hasSuffix("no errors; 1 application\n"), "\(checked.output)")
    let without = try site.run(["config", "check", site.file("compose.json5")])
    #expect(without.status == 78 && without.output.contains("broker"))

    for provider in ["apns", "fcm"] {
      let child = try site.start(
        [
          "simulate", provider, "--listen", "127.0.0.1:0", "--certificate", "\(folder)/server.pem", "--key",
          "\(folder)/server.key",
        ])
      #expect(child.waitForOutput("listens on 127.0.0.1:", seconds: 90))
      let port = try #require(child.outputSoFar.firstMatch(of: /listens on 127.0.0.1:([0-9]+)/)?.1)
      config.replace(try Regex("https://\(provider):[0-9]+"), with: "https://localhost:\(port)")
    }
    try site.write(config, to: "compose.json5")
    let doctor = try site.run(
      ["doctor", "--config", site.file("compose.json5")], environment: ["PUSHFLEET_BROKER": site.brokerURI])
    for words in ["key, team and topic are accepted", "account, project and permission are accepted"] {
      #expect(doctor.output.contains(words), "\(doctor.output)")
    }
  }

  @Test("of deploy/systemd and deploy/kubernetes have valid configurations once their files exist")
  func others() throws {
    let site = try Site()
    let folder = site.file("secrets")
    let script = DocumentTests.root.appending(path: "deploy/compose/make-secrets").path
    #expect(try Self.ended([script, folder], site).status == 0)
    let kubernetes = try ["base", "examples/fleet"].map { place in
      (
        text: try DocumentTests.text("deploy/kubernetes/\(place)/config.json5")
          .replacing("/run/secrets/pushfleet", with: folder),
        environment: ["PUSHFLEET_BROKER_FILE": "\(folder)/broker", "PUSHFLEET_REGISTRY": "postgresql://pushfleet@db/push"]
      )
    }
    let systemd = try DocumentTests.text("deploy/systemd/config.json5").replacing("\"AuthKey", with: "\"\(folder)/AuthKey")
    let configurations: [(text: String, environment: [String: String])] = kubernetes + [(systemd, [:])]
    for (text, environment) in configurations {
      let checked = try site.run(
        ["config", "check", try site.write(text, to: "config.json5")], environment: environment)
      #expect(checked.status == 0 && checked.output.hasSuffix("no errors; 1 application\n"), "\(checked.output)")
    }
  }
}
