import Foundation
import TestSupport
import Testing

/// Runs every command that draws on a terminal, with input from a file, a pipe and the keyboard.
@Suite("The progress that commands draw on a terminal", .blocking)
struct DrawingTests {
  private struct Step {
    var name: String
    var line: String
    var status: Int32 = 0
    /// Words on the screen at the end.
    var words: [String] = []
    /// Each line fits the terminal.
    var fits = false
    var keys: String?
    /// Long enough for a bar: on one terminal only, because it takes time.
    var isLong = false
  }

  private static let request = #"{"to":"\#(token(1))","notification":{"body":"x"}}"#

  private static let steps: [Step] = {
    let wait = "pushfleet send --app \(Site.app) --wait"
    let delivered = ["1 sent, 1 "]
    return [
      Step(name: "wait-file", line: "\(wait) request.json", words: delivered),
      Step(name: "wait-pipe", line: "cat request.json | \(wait) -", words: delivered),
      Step(name: "wait-input", line: "\(wait) - < request.json", words: delivered),
      Step(name: "wait-fifo", line: "\(wait) <(cat request.json)", words: delivered),
      Step(name: "wait-link", line: "\(wait) link.json", words: delivered),
      Step(name: "wait-keyboard", line: "\(wait) -", words: delivered, keys: request + "\n\u{4}"),
      Step(name: "wait-short", line: "\(wait) short.json", status: 65, words: ["1 sent"]),
      Step(name: "send-many", line: "pushfleet send many.ndjson", words: ["1500 sent"], isLong: true),
      Step(name: "send-both", line: "pushfleet send many.ndjson - < request.json", words: ["1501 sent"], isLong: true),
      Step(name: "send-bad", line: "pushfleet send bad.ndjson", status: 65, words: ["1500 sent, 1 refused"], isLong: true),
      Step(name: "send-ids", line: "pushfleet send --ids request.json many.ndjson", words: ["1501 sent"], isLong: true),
      Step(name: "send-check", line: "cat many.ndjson | pushfleet send --check -", words: ["1500 sent"], isLong: true),
      Step(name: "import-file", line: "pushfleet devices import devices.csv", words: ["4000 of 4000 rows"], isLong: true),
      Step(name: "import-link", line: "pushfleet devices import linked.csv", words: ["200 of 200 rows"]),
      Step(name: "import-both", line: "pushfleet devices import few.csv - < few.csv", words: ["400 of 400 rows"]),
      Step(name: "import-pipe", line: "cat few.csv | pushfleet devices import -", words: ["200 of 200 rows"]),
      Step(
        name: "import-keyboard", line: "pushfleet devices import -", words: ["1 of 1 rows"],
        keys: #"{"platform":"apns","token":"\#(token(1))"}"# + "\n\u{4}"),
      Step(
        name: "import-bad", line: "pushfleet devices import badly.csv", status: 65, words: ["4000 of 4001 rows", "1 refused"],
        isLong: true),
      Step(name: "dead-list", line: "pushfleet dead list", fits: true),
      Step(name: "dead-dry", line: "pushfleet dead replay --dry-run --error InvalidParameters"),
      Step(name: "dead-replay", line: "pushfleet dead replay --error Unavailable", words: ["dead letters replayed"]),
      Step(name: "dead-drop", line: "pushfleet dead drop", words: ["dropped"], keys: "y\n"),
      Step(name: "campaigns", line: "pushfleet campaigns", words: ["CAMPAIGN"], fits: true),
      Step(name: "status", line: "pushfleet status --pools", fits: true),
      Step(name: "top-once", line: "pushfleet top --once", fits: true),
      Step(name: "top", line: "pushfleet top", fits: true, keys: "q"),
      Step(name: "doctor", line: "pushfleet doctor"),
      Step(name: "explain", line: "pushfleet explain request.json"),
      Step(name: "trace", line: "pushfleet trace \(token(1))"),
      Step(name: "devices-list", line: "pushfleet devices list --state gone"),
      Step(name: "topics-list", line: "pushfleet topics list", words: ["news"]),
    ]
  }()

  private static func prepare() throws -> Site {
    let site = try Site()
    try site.startFleet(settings: "trace: { keep: '1h' },")
    try FileManager.default.copyItem(atPath: site.file("pushfleet.json5"), toPath: site.file("F"))
    try site.write(request, to: "request.json")
    try site.write("{}", to: "short.json")
    let many = Array(repeating: request, count: 1_500).joined(separator: "\n")
    try site.write(many, to: "many.ndjson")
    try site.write(many.replacing("\n", with: "\n[]\n", maxReplacements: 1), to: "bad.ndjson")
    func rows(_ count: Int) -> String { (1...count).map { "apns,\(token($0)),news\n" }.joined() }
    try site.write("platform,token,topics\n\(rows(4_000))", to: "devices.csv")
    try site.write("platform,token,topics\n\(rows(200))", to: "few.csv")
    try site.write("platform,token,topics\n\(rows(4_000))ios,x,news\n", to: "badly.csv")
    for (link, file) in [("link.json", "request.json"), ("linked.csv", "few.csv")] {
      try FileManager.default.createSymbolicLink(atPath: site.file(link), withDestinationPath: site.file(file))
    }
    return site
  }

  /// Dead letters, an ended campaign, and a topic.
  private static func fill(_ site: Site) throws {
    let now = ISO8601DateFormatter().string(from: Date())
    try site.publish(
      lines: (0..<30).map { index in
        let headers = [
          "x-push-error": index % 3 == 0 ? "InvalidParameters" : "Unavailable",
          "x-push-reason": "a reason that needs some room",
          "x-push-failed-at": now, "x-push-origin": "send.high",
        ]
        return [
          "body": ["to": token(1), "data": ["m": "x"]], "exchange": "\(site.prefix).dead", "routing_key": "dead",
          "properties": ["message_id": "\(index)", "app_id": Site.app, "headers": headers],
        ]
      })
  }

  @Test("ends correctly, counts at most to its total, and leaves bars intact", arguments: [40, 80, 200])
  func draws(columns: Int) throws {
    let site = try Self.prepare()
    try site.importDevices([1], #""topics":["news"]"#)
    let worker = try site.startWorker()
    try site.send(lines: [#"{"to":"/topics/news","notification":{"body":"x"}}"#])
    try Self.fill(site)
    let steps = Self.steps.filter { !$0.isLong || columns == 80 }
    let script = steps.map { "echo '== \($0.name)'\n\($0.line)\necho \"-- $?\"" }.joined(separator: "\n")
    try site.write(script, to: "script.sh")
    let typed = steps.filter { $0.keys != nil }.flatMap {
      [
        "--until", $0.name == "top" ? "q ends" : $0.name == "dead-drop" ? "for good?" : "== \($0.name)", "--keys",
        $0.keys ?? "",
      ]
    }
    let folder = URL(filePath: Program.path).deletingLastPathComponent().path
    let log = site.file("screen")
    let child = try ChildProcess(
      ["/usr/bin/python3", Site.support("terminal.py"), "--columns", "\(columns)"] + typed + ["--", "/bin/bash", "script.sh"],
      environment: Site.environment.merging(
        ["TERM": "xterm-256color", "PATH": "\(folder):/usr/bin:/bin", "PUSHFLEET_CONFIG": "F"]
      ) { $1 }, directory: site.folder.path, output: log)
    #expect(child.wait() == 0)
    let bytes = try String(contentsOfFile: log, encoding: .utf8)
    for match in bytes.matches(of: /\((\d+) of (\d+)\)/) {
      #expect(Int(match.1) ?? 0 <= Int(match.2) ?? 0, "\(match.0)")
    }
    for word in columns == 80 ? ["sending", "importing", "replaying"] : [] { #expect(bytes.contains("\r\(word) █"), "\(word)") }
    for match in bytes.matches(of: /(\d+)%/) { #expect(Int(match.1) ?? 0 <= 100, "\(match.0)") }
    let (begun, whole) = (
      /(sending|importing|replaying) +[█░]/, /^(sending|importing|replaying) [█░]+ \d+%( \(\d+ of \d+\))? *$/
    )
    for step in steps {
      guard let begin = bytes.firstRange(of: "== \(step.name)\r\n"),
        let end = bytes[begin.upperBound...].firstMatch(of: /-- (\d+)\r\n/)
      else {
        Issue.record("\(step.name) did not end: \(bytes.suffix(3_000))")
        break
      }
      let got = String(bytes[begin.upperBound..<end.range.lowerBound])
      #expect(Int32(end.1) == step.status, "\(step.name): \(got)")
      let screen = Screen(got, columns: columns)
      for words in step.words { #expect(got.contains(words), "\(step.name): \(words) is not in \(screen.lines)") }
      if step.fits { #expect(screen.wrapped.isEmpty, "\(step.name): \(screen.wrapped)") }
      // A bar has its own line, and a removed one leaves nothing.
      let bars = screen.lines.filter { $0.contains(begun) }
      #expect(bars.allSatisfy { $0.contains(whole) }, "\(step.name): \(bars)")
      #expect(screen.wrapped.allSatisfy { line in !line.contains { "█░".contains($0) } }, "\(step.name): \(screen.wrapped)")
    }
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
