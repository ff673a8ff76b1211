import Foundation
import TestSupport
import Testing

/// Follows the documents' instructions literally, except for addresses.
@Suite("The instructions of the documents", .blocking)
struct DocumentTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }

  /// The code blocks of a language, in their order.
  static func blocks(_ language: String, in path: String) throws -> [String] {
    try text(path).split(separator: "\n```\(language)\n").dropFirst().map { block in
      block.firstRange(of: "\n```").map { String(block[..<$0.lowerBound]) } ?? ""
    }
  }

  /// A separate virtual host, so that names can be those of the documents.
  private static func host(_ site: Site) throws -> String {
    let all = #"<<".*">>, <<".*">>, <<".*">>"#
    try site.broker.evaluate(
      """
      ok = rabbit_vhost:add(<<"\(site.prefix)">>, <<"test">>),
      ok = rabbit_auth_backend_internal:set_permissions(<<"guest">>, <<"\(site.prefix)">>, \(all), <<"test">>).
      """)
    return site.prefix
  }

  @Test("the README's first five minutes work unchanged, on a terminal of any width", arguments: [40, 80, 200])
  func readme(columns: Int) throws {
    let site = try Site()
    let host = try Self.host(site)
    let port = try FreePorts.take(1)[0]
    // The first block names the demonstration and the tests.
    let blocks = try Self.blocks("sh", in: "README.md").filter { $0.contains("config.json5") }
    try #require(blocks.count == 3)
    let lines = blocks.map { block in
      block.replacing("127.0.0.1:5672/", with: "127.0.0.1:\(site.broker.port)/\(host)").replacing("8443", with: "\(port)")
    }
    let end = "kill %1 %2"
    #expect(try Self.text("README.md").contains("`\(end)`"))
    let script = """
      set -euo pipefail
      cd '\(site.folder.path)'
      PATH='\(URL(fileURLWithPath: Program.path).deletingLastPathComponent().path)':$PATH
      trap 'trap - EXIT; \(end); wait' EXIT
      \(lines.joined(separator: "\n"))
      """
    let child = try ChildProcess(
      ["/usr/bin/python3", Site.support("terminal.py"), "--columns", "\(columns)", "--", "/bin/bash", "-c", script],
      environment: Site.environment, output: site.file("script.log"))
    let status = child.wait()
    let screen = Screen(try String(contentsOfFile: site.file("script.log"), encoding: .utf8), columns: columns)
    // The log's lines may be anywhere among the others, but not within one.
    #expect(screen.lines.allSatisfy { !$0.contains(/█.*\{/) }, "\(screen.lines)")
    let output = screen.lines.joined()
    #expect(status == 0, "\(output)")
    for words in [
      "request.json, line 1: accepted by APNs for 1", "Portugal vs. Denmark",
      "standard input, line 1: accepted by APNs for 1",
      // A narrow table leaves out the target's name.
      columns < 80 ? "CAMPAIGN" : "/topics/news",
      "InvalidParameters: notifcation: unknown key", "refused",
    ] { #expect(output.contains(words), "\(words) is not in \(output)") }
  }

  @Test("each gateway call in docs/send/upmc.md is in docs/openapi.yaml")
  func upmc() throws {
    let operations = try DoorDescription.shared.get().operations
    let calls = try Self.text("docs/send/upmc.md").matches(of: /`(PUT|POST|DELETE) (\/\S+)`/)
    #expect(calls.count == 13)
    for call in calls {
      #expect(operations.contains { $0.method == call.1 && $0.path == call.2 }, "docs/openapi.yaml has no \(call.0)")
    }
  }

  @Test("the Python program for producers publishes, is confirmed, and prints its result")
  func python() throws {
    let site = try Site()
    let host = try Self.host(site)
    site.brokerURI += "/\(host)"
    try site.startSimulator()
    let config = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    try site.write(config.replacing("prefix: \"\(site.prefix)\",", with: ""), to: "pushfleet.json5")
    try site.declareTopology()
    _ = try site.startWorker()
    let program = try site.write(try #require(try Self.blocks("python", in: "docs/send/producers.md").first), to: "send.py")
    let output = try site.foreign([
      "/usr/bin/env", "AMQP_URL=\(site.brokerURI)", "TARGET=\(token(1))", "/usr/bin/python3", program,
    ])
    #expect(Site.objects(output).last?["success"] as? Int == 1, "\(output)")
  }

  @Test("the users of deploy/rabbitmq/definitions.json have the rights for their purpose, and no more")
  func definitions() throws {
    let site = try Site()
    let host = try Self.host(site)
    let definitions = try Self.text("deploy/rabbitmq/definitions.json")
    let file = try site.write(
      definitions.replacing(#""vhost": "/""#, with: #""vhost": "\#(host)""#).replacing(
        #""name": "/""#, with: #""name": "\#(host)""#),
      to: "definitions.json")
    try site.broker.control("import_definitions", file)
    try site.startSimulator(script: ["*": ["status": 410, "reason": "Unregistered"]])
    let config = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    let text = config.replacing("prefix: \"\(site.prefix)\",", with: "")
    func run(as user: String, _ words: [String]) throws -> Site.Ended {
      let uri = "amqp://\(user):secret@127.0.0.1:\(site.broker.port)/\(host)"
      let own = try site.write(text.replacing(site.brokerURI, with: uri), to: "\(user).json5")
      return try site.run(words + ["--config", own])
    }
    // The imported users can't log in.
    #expect(try run(as: "pushfleet-worker", ["topology"]).output.contains("refused the user"))
    let passwords = ["pushfleet-worker", "pushfleet-gateway", "billing", "pruning"].map {
      #"ok = rabbit_auth_backend_internal:change_password(<<"\#($0)">>, <<"secret">>, <<"test">>)"#
    }
    try site.broker.evaluate(passwords.joined(separator: ", ") + ".")
    for user in ["billing", "pushfleet-gateway"] { #expect(try run(as: user, ["topology"]).status != 0) }
    let declared = try run(as: "pushfleet-worker", ["topology"])
    #expect(declared.status == 0, "\(declared.output)")
    let request = try site.write(#"{"to":"\#(token(1))","notification":{"body":"x"}}"#, to: "request.json")
    for user in ["billing", "pushfleet-gateway"] {
      let sent = try run(as: user, ["send", request])
      #expect(sent.status == 0, "\(sent.output)")
      #expect(try run(as: user, ["feedback"]).status == 69)
    }
    let worked = try run(as: "pushfleet-worker", ["worker", "--until-empty", "--json"])
    #expect(worked.status == 0 && worked.output.contains(#""feedback":2"#), "\(worked.output)")
    let pruned = try run(as: "pruning", ["feedback"])
    #expect(pruned.status == 0 && pruned.output.contains(token(1)), "\(pruned.output)")
    let refused = try run(as: "pruning", ["send", request])
    #expect(refused.status == 69 && refused.output.contains("push.send"), "\(refused.output)")
  }
}
