import Foundation
import TestSupport
import Testing

@Suite("Output to a terminal and to a pipe", .blocking)
struct TerminalTests {
  private static let app = "com.example.an-application-with-a-name-that-needs-most-of-a-line"

  /// A fleet with coloured output: a worker whose provider is in trouble.
  private let site: Site
  private let request: String

  init() throws {
    site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.write(
      """
      { broker: "\(site.brokerURI)", prefix: "\(site.prefix)",
        apps: { "\(Self.app)": { apns: \(site.apns(topic: Self.app, port: Int(port))) } } }
      """, to: "pushfleet.json5")
    try site.declareTopology()
    let body =
      #"{"to":"\#(token(1))","notification":{"title":"A title","body":"A body","tag":"t","icon":"i"},"priority":"high"}"#
    request = try site.write(body, to: "request.json")
  }

  /// Runs a command on Python's pseudo-terminal.
  private func onTerminal(
    _ words: [String], columns: Int = 80, until text: String = "", environment: [String: String] = [:]
  ) throws -> (status: Int32, screen: String) {
    let log = site.file("terminal-\(UUID().uuidString)")
    let child = try ChildProcess(
      [
        "/usr/bin/python3", Site.support("terminal.py"), "--columns", "\(columns)",
      ] + (text.isEmpty ? [] : ["--until", text, "--keys", "q"]) + ["--", Program.path] + words + [
        "--config", site.file("pushfleet.json5"),
      ],
      environment: Site.environment.merging(["TERM": "xterm-256color"]) { $1 }.merging(environment) { $1 }, output: log)
    let status = child.wait()
    let screen = try String(contentsOfFile: log, encoding: .utf8)
    return (status, screen)
  }

  private static func hasColour(_ text: String) -> Bool { text.contains(/\u{1B}\[[0-9;]*m/) }

  /// The lines that a terminal shows after this output.
  private static func lines(_ screen: String) -> [String] {
    screen.replacing(/\u{1B}\[[?0-9;]*[A-Za-z]/, with: { $0.output.hasSuffix("H") ? "\n" : "" })
      .split(whereSeparator: \.isNewline).map(String.init)
  }

  @Test("status, top --once and explain are coloured on a terminal, but not with NO_COLOR, and never in a pipe or a file")
  func colours() throws {
    for words in [["status"], ["top", "--once"], ["explain", request]] {
      let terminal = try onTerminal(words)
      #expect(terminal.status == 0 && Self.hasColour(terminal.screen), "\(words): \(terminal.screen)")
      for environment in [["NO_COLOR": "1"], ["TERM": "dumb"]] {
        let plain = try onTerminal(words, environment: environment)
        #expect(plain.status == 0 && !plain.screen.contains("\u{1B}"), "\(words): \(plain.screen)")
      }
      // An empty NO_COLOR has no effect.
      #expect(Self.hasColour(try onTerminal(words, environment: ["NO_COLOR": ""]).screen), "\(words)")
      let piped = try site.run(words + ["--config", site.file("pushfleet.json5")])
      #expect(piped.status == 0 && !piped.output.contains("\u{1B}") && piped.output.contains("\n"), "\(piped.output)")
    }
  }

  @Test("top prints once on a terminal that knows no control codes", arguments: ["dumb", ""])
  func plainTop(terminal: String) throws {
    let plain = try onTerminal(["top"], until: "q ends", environment: ["TERM": terminal])
    #expect(plain.status == 0 && !plain.screen.contains("\u{1B}") && plain.screen.contains("send.high"), "\(plain.screen)")
  }

  @Test("no line is longer than the terminal, whatever must be cut", arguments: [40, 80, 200])
  func widths(columns: Int) throws {
    let worker = try site.startWorker()
    try site.send(tokens: [token(1)])
    // Nobody listens where the provider should be.
    #expect(worker.waitForOutput("provider unreachable", seconds: 90))
    // A shortened name keeps its beginning.
    let name = columns == 200 ? Self.app : "com.example"
    let live = try onTerminal(["top", "--pools"], columns: columns, until: name)
    #expect(live.status == 0 && live.screen.hasSuffix("\u{1B}[?1049l") && live.screen.contains("q ends"))
    var screens = [live.screen]
    for words in [["status", "--pools"], ["top", "--once", "--pools"], ["dead", "list"]] {
      // A worker without processor time may not answer this time.
      var once = (status: Int32(0), screen: "")
      #expect(
        try eventually {
          once = try onTerminal(words, columns: columns)
          return once.status == 0 && (once.screen.contains(name) || words[0] == "dead")
        }, "\(words): \(once.screen)")
      screens.append(once.screen)
    }
    for screen in screens {
      let long = Self.lines(screen).filter { $0.count > columns }
      #expect(long.isEmpty, "\(screen)")
    }
    for screen in screens.prefix(3) {
      #expect(screen.contains("\(site.prefix).send.high"))
      #expect(screen.contains("FAILED/S"))
      if columns > 40 { for head in ["STATE", "SENT/S", "SENT", "FAILED"] { #expect(screen.contains(head)) } }
    }
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
