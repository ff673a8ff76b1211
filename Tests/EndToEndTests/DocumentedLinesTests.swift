import Foundation
import TestSupport
import Testing

/// A test runs each line that a document gives the reader to type, or this list has the reason why none does.
@Suite("Every line that a document gives to type", .blocking)
struct DocumentedLinesTests {
  private enum Way {
    /// Run by this suite, in the order of this list, and ends with 0.
    case here
    /// Run by this suite until the output has these words.
    case until(String)
    /// Run in a form that ends soon: with these words instead of the others.
    case instead(String)
    /// Run by a test of another suite, which reads the page or has this name.
    case elsewhere(String)
    case left(String)
  }

  private static let benches = "minutes of measuring; that its words are known is tested here"
  private static let engine = "there is no container engine"
  private static let suite = "the suite itself"
  private static let long = "builds first, and runs for minutes or hours"

  /// The document, and the beginning of the line.
  private static let rows: [(document: String, start: String, way: Way)] = [
    ("docs/send/webhooks.md", "pushfleet ", .elsewhere("WebhookTests")),
    ("docs/operate/console.md", "pushfleet console --config F", .until("the console is at")),
    ("docs/operate/console.md", "pushfleet keys create --config F", .here),
    ("docs/operate/dead-letters.md", "pushfleet dead ", .here),
    ("docs/operate/dead-letters.md", "pushfleet feedback --exec", .here),
    ("docs/operate/dead-letters.md", "rabbitmq-plugins enable", .elsewhere("ReplayTests.recipe")),
    ("docs/operate/dead-letters.md", "rabbitmqctl set_parameter shovel", .elsewhere("ReplayTests.recipe")),
    ("docs/operate/deploying.md", "rabbitmqadmin delete exchange", .left("a program that the management plugin serves")),
    ("docs/operate/operating.md", "pushfleet ", .here),
    ("docs/operate/operating.md", "pushfleet credentials ", .elsewhere("OperatorTests.credential")),
    ("docs/operate/permissions.md", "rabbitmqctl ", .here),
    ("docs/operate/scaling.md", "pushfleet topology --holds", .here),
    ("docs/operate/scaling.md", "rabbitmq-plugins enable", .left("the tests' broker has the plugin from its start")),
    ("docs/operate/scaling.md", "rabbitmqctl list_queues name messages", .here),
    ("docs/operate/watching.md", "pushfleet doctor", .here),
    ("docs/operate/watching.md", "pushfleet config check config.json5", .here),
    ("docs/operate/watching.md", "pushfleet status", .here),
    ("docs/operate/watching.md", "pushfleet trace 7f1c0c1e", .here),
    ("docs/operate/watching.md", "pushfleet trace --", .elsewhere("TraceTests.deviceStory")),
    ("docs/operate/runbook.md", "systemctl ", .left("there is no systemd that runs")),
    ("docs/operate/runbook.md", "rabbitmqctl status", .here),
    ("docs/operate/runbook.md", "rabbitmq-queues quorum_status", .here),
    ("docs/operate/runbook.md", "rabbitmqctl list_queues name ", .here),
    ("docs/operate/runbook.md", "rabbitmqctl eval \"{ok, Ms", .left("needs a cluster; dev/chaos moves leaders like this")),
    ("docs/operate/runbook.md", "rabbitmqctl ", .elsewhere("LadderStandstillTests.recovery")),
    ("docs/operate/runbook.md", "pushfleet config check $PUSHFLEET_CONFIG", .here),
    ("docs/operate/runbook.md", "pushfleet doctor", .here),
    ("docs/operate/runbook.md", "pushfleet status", .here),
    ("docs/operate/runbook.md", "pushfleet top --pools", .here),
    ("docs/operate/runbook.md", "pushfleet topology --holds", .here),
    ("docs/operate/runbook.md", "pushfleet dead ", .here),
    ("docs/operate/runbook.md", "pushfleet campaigns", .here),
    ("docs/operate/runbook.md", "pushfleet campaigns resume ID", .elsewhere("SteeringTests")),
    ("docs/operate/runbook.md", "pushfleet campaigns cancel ID", .elsewhere("SteeringTests")),
    ("docs/operate/runbook.md", "pushfleet apps list", .elsewhere("OperatorTests.pause")),
    ("docs/operate/runbook.md", "pushfleet credentials list", .elsewhere("OperatorTests.credential")),
    ("docs/operate/runbook.md", "pushfleet webhooks list", .elsewhere("WebhookTests")),
    ("docs/operate/scale.md", "rabbitmq-queues rebalance quorum", .here),
    ("docs/operate/scale.md", "pushfleet campaigns --follow", .here),
    ("docs/configuration.md", "pushfleet vapid create vapid.pem", .here),
    ("docs/send/browsers.md", "pushfleet vapid ", .here),
    ("docs/send/browsers.md", "pushfleet simulate webpush", .until("listens on")),
    ("docs/send/browsers.md", "pushfleet devices import", .here),
    ("docs/send/registry.md", "pushfleet devices import", .here),
    ("docs/send/registry.md", "sqlite3 ", .elsewhere("DocumentedToolsTests.sqlite")),
    ("docs/send/registry.md", "pg_", .elsewhere("DocumentedToolsTests.postgres")),
    (
      "docs/send/gateway.md", "pushfleet keys create --config F --app com.example.app --rights send --service-account",
      .elsewhere("DoorTokenTests.traded")
    ),
    ("docs/send/gateway.md", "pushfleet keys create --config F", .here),
    ("docs/send/gateway.md", "pushfleet gateway --config F", .until("publishing")),
    ("docs/send/gateway-apns.md", "openssl ", .elsewhere("DocumentedToolsTests.certificates")),
    ("docs/send/migration.md", "pushfleet explain request.json", .here),
    ("docs/send/migration.md", "pushfleet send --config config.json5", .here),
    ("docs/send/migration.md", "pushfleet feedback --exec", .left("only named; the line is in docs/operate/dead-letters.md")),
    ("docs/send/migration.md", "pushfleet devices import --dry-run", .left("only named; CommandTests.DevicesTests runs it")),
    ("docs/send/producers.md", "pushfleet explain request.json", .here),
    ("docs/send/producers.md", "pushfleet send --check", .left("only named; the line is in README.md")),
    ("docs/internals/reliability.md", "dev/chaos", .instead("--schedule")),
    ("docs/internals/simulation.md", "dev/simulate --prove", .left("builds the sources anew for each defect")),
    ("docs/internals/simulation.md", "dev/simulate", .instead("fleetsim")),
    ("docs/internals/benchmarks.md", "dev/bench", .left(benches)),
    ("README.md", "pushfleet ", .elsewhere("DocumentTests.readme")),
    ("README.md", "kill %1 %2", .elsewhere("DocumentTests.readme")),
    ("README.md", "deploy/demo", .left("CI runs it, from a fresh clone")), ("README.md", "deploy/test", .left(suite)),
    ("README.md", "apt install", .left("deploy/install-dependencies installs it")),
    ("docs/operate/install.md", "apt install", .left("deploy/test installs the package by dev/check-package")),
    ("docs/operate/install.md", "swift build", .left("deploy/test builds the program so")),
    ("docs/operate/install.md", "docker ", .left(engine)),
    ("docs/operate/install.md", "deploy/compose/make-secrets", .left(engine)),
    ("docs/operate/install.md", "systemctl ", .left("there is no systemd that runs")),
    ("docs/operate/install.md", "pushfleet feedback --config config.json5", .here),
    ("SECURITY.md", "pushfleet --version", .here),
    ("CHANGELOG.md", "pushfleet --version", .here),
    ("CONTRIBUTING.md", "dev/chaos", .instead("--schedule")),
    ("CONTRIBUTING.md", "dev/simulate", .instead("fleetsim")),
    ("CONTRIBUTING.md", "dev/fuzz", .left(long)),
    ("CONTRIBUTING.md", "dev/check", .left("builds the tests and runs some of them, which are the suite's own")),
    ("CONTRIBUTING.md", "deploy/install-dependencies", .left("deploy/test runs it first")),
    ("CONTRIBUTING.md", "deploy/test", .left(suite)), ("CONTRIBUTING.md", "PUSHFLEET_TEST_", .left(suite)),
    ("CONTRIBUTING.md", "swift test", .left(suite)),
    ("CONTRIBUTING.md", "venv/bin/python", .left("needs a package that CI doesn't have")),
    ("CONTRIBUTING.md", "swift format", .left("deploy/test runs the formatter's check")),
  ]

  /// The beginning of a shell line.
  private static var program: Regex<(Substring, Substring?, Substring)> {
    /^([A-Z_]+=\S+ |sudo )?(pushfleet|deploy\/|dev\/|rabbitmq|apt|docker|systemctl|openssl|sqlite3|pg_|kill|swift |venv\/)/
  }

  /// The lines of all documents, each with its expected result.
  private static func lines() throws -> [(document: String, line: String)] {
    let files = FileManager.default
    let top = try files.contentsOfDirectory(atPath: DocumentTests.root.path).sorted()
    let docs = try ["docs", "docs/send", "docs/operate", "docs/internals"].flatMap { folder in
      try files.contentsOfDirectory(atPath: DocumentTests.root.appending(path: folder).path).sorted().map { "\(folder)/\($0)" }
    }
    return try (top + docs).filter { $0.hasSuffix(".md") }.flatMap { document in
      let code = DocumentCode(try DocumentTests.text(document))
      let lines = (code.lines + code.spans.filter(isLine)).filter { $0.contains(program) }
      return lines.map { (document, $0) }
    }
  }

  /// True for more than the name of a command and its action.
  private static func isLine(_ span: String) -> Bool {
    let words = span.split(separator: " ").dropFirst()
    return words.contains { !$0.allSatisfy { $0.isLowercase || $0 == "|" } } && !words.contains("COMMAND")
      || span.hasPrefix("kill ")
      || span.hasPrefix("docker ") || span.hasPrefix("apt ") || span.hasPrefix("rabbitmq") && !words.isEmpty
  }

  /// The row for a line: the most exact one.
  private static func row(_ document: String, _ line: String) -> Int? {
    rows.indices.filter { rows[$0].document == document && line.hasPrefix(rows[$0].start) }
      .max { rows[$0].start.count < rows[$1].start.count }
  }

  @Test("is listed, and no other line is")
  func complete() throws {
    let lines = try Self.lines()
    let known = lines.map { Self.row($0.document, $0.line) }
    for (line, row) in zip(lines, known) where row == nil {
      Issue.record("\(line.document): no test runs \(line.line)")
    }
    for row in Self.rows.indices where !known.contains(row) {
      Issue.record("\(Self.rows[row].document) has no line that begins with \(Self.rows[row].start)")
    }
    let tests = DocumentTests.root.appending(path: "Tests/EndToEndTests")
    for case .elsewhere(let name) in Self.rows.map(\.way) {
      let parts = name.split(separator: ".")
      let text = try String(contentsOf: tests.appending(path: "\(parts[0]).swift"), encoding: .utf8)
      #expect(parts.count == 1 || text.contains("func \(parts[1])("), "\(name)")
    }
  }

  // MARK: running them

  /// Creates the files and objects that the lines name, with a separate broker.
  private static func prepare() throws -> Site {
    let site = try Site(broker: try Broker(), prefix: "push")
    try site.startSimulator(script: [token(9): ["status": 410, "reason": "Unregistered"]])
    let port = try FreePorts.take(1)[0]
    try site.configureFleet(
      "sqlite:registry.db", settings: "trace: { keep: '1h' }, gateway: { http: { listen: '127.0.0.1:\(port)' } },")
    for name in ["F", "config.json5"] {
      try FileManager.default.copyItem(atPath: site.file("pushfleet.json5"), toPath: site.file(name))
    }
    try site.declareTopology()
    try site.write(#"{"to":"\#(token(1))","notification":{"body":"x"}}"#, to: "request.json")
    try site.write(#"{"to":"\#(token(1))","notification":{"body":"x"}}"#, to: "requests.ndjson")
    try site.write("platform,token\napns,\(token(1))\n", to: "devices.csv")
    try site.write("#!/bin/sh\ncat > pruned\n", to: "prune-tokens")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: site.file("prune-tokens"))
    let id = "7f1c0c1e-52f7-4d7e-9a43-0d1f6a0a3b55"
    try site.publish([
      (["to": token(2), "notification": ["body": "x"]], ["message_id": id]),
      (["to": token(9), "notification": ["body": "x"]], ["message_id": "gone"]),
    ])
    try site.drain()
    let now = ISO8601DateFormatter().string(from: Date())
    try site.publish(
      lines: [("Unavailable", "away", "replayed"), ("InvalidParameters", "unknown key", "dropped")].map { error, reason, id in
        let headers = [
          "x-push-error": error, "x-push-reason": reason, "x-push-failed-at": now,
          "x-push-origin": "send.high",
        ]
        return [
          "body": ["to": token(1), "data": ["m": id]], "exchange": "push.dead", "routing_key": "dead",
          // Another application than that of replayed letters.
          "properties": ["message_id": id, "app_id": id == "replayed" ? Site.app : "other", "headers": headers],
        ]
      })
    return site
  }

  /// Runs a line in the site's folder on a terminal, in a shell with the broker's environment.
  private static func run(_ line: String, in site: Site, until words: String?) throws {
    let folder = URL(filePath: Program.path).deletingLastPathComponent().path
    var script = line
    if let words {
      let log = site.file("until-\(UUID().uuidString)")
      script =
        """
        : > '\(log)'; \(line) >> '\(log)' 2>&1 & child=$!
        grep -q '\(words)' <(tail -n +1 --follow --pid=$child '\(log)' 2> /dev/null); kill $child; wait $child || true
        """
    }
    let environment =
      "set -euo pipefail; cd '\(site.folder.path)'; PATH='\(folder)':$PATH; export PUSHFLEET_CONFIG=F SWIFT_BACKTRACE=enable=no"
    let (prompt, keys) = line.contains(" top ") ? ("q ends", "q") : ("for good?", "y\n")
    let terminal = ["/usr/bin/python3", Site.support("terminal.py"), "--until", prompt, "--keys", keys, "--"]
    do { try site.broker.run(terminal + ["/bin/bash", "-c", "\(environment)\n\(script)"]) } catch {
      Issue.record("\(line): \(error)")
    }
  }

  @Test("runs unchanged, except for addresses and file names", .early)
  func lines() throws {
    let site = try Self.prepare()
    var ran: Set<String> = []
    for (document, line) in try Self.lines() {
      guard let row = Self.row(document, line), ran.insert(line).inserted else { continue }
      switch Self.rows[row].way {
      case .here: try Self.run(line, in: site, until: nil)
      case .until(let words): try Self.run(line, in: site, until: words)
      case .instead("--schedule"):
        let chaos = line.replacing("dev/chaos", with: DocumentTests.root.appending(path: "dev/chaos").path)
        try Self.run(
          chaos.split(separator: " #")[0] + (line.contains("--self-check") ? "" : " --schedule"), in: site, until: nil)
      case .instead:
        let fleetsim = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "fleetsim").path
        let few = line.replacing("dev/simulate", with: fleetsim).replacing(/--seeds \d+/, with: "")
        let seeds = line.contains("--seed ") ? "" : " --seeds 1"
        let words = (few.split(separator: " #")[0] + seeds).split(separator: " ").joined(separator: " ")
        // Lines that differ only in the number of seeds count once.
        if ran.insert(words).inserted { try Self.run(words, in: site, until: nil) }
      case .elsewhere, .left: break
      }
    }
    #expect(try site.depths(["dead", "send.high", "feedback"]) == [0, 1, 0])
    #expect(try String(contentsOfFile: site.file("pruned"), encoding: .utf8).contains(token(9)))
  }

  @Test("of a benchmark names one that dev/bench knows")
  func benches() throws {
    let help = try ChildProcess.run([DocumentTests.root.appending(path: "dev/bench").path, "--help"]).output
    for (document, line) in try Self.lines() where document == "docs/internals/benchmarks.md" {
      let words = line.split(separator: " #")[0].split(separator: " ").dropFirst()
      // The others are numbers and folders.
      for word in words where Int(word) == nil && !word.hasSuffix("/") {
        #expect(help.contains("\n  \(word) "), "\(line)")
      }
    }
  }
}
