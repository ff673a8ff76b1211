import Foundation
import TestSupport
import Testing

@testable import pushfleet

@Suite("Help, completions and the manual")
struct HelpTests {
  /// What a form of a command says it knows, when it is asked for what it doesn't.
  static func known(_ command: any Command.Type, _ action: String?) -> [String: Bool] {
    do throws(CommandFailure) {
      _ = try command.page.options([action, "--no-such-option"].compactMap { $0 })
      Issue.record("\(command.page.name) \(action ?? "") takes anything")
    } catch {
      guard error.status == .usage, error.message.contains("unknown option") else {
        Issue.record("\(command.page.name) \(action ?? ""): \(error.message)")
        return [:]
      }
      let names = error.message.split(separator: "nown: ").dropFirst().last?.split(separator: ", ") ?? []
      return Dictionary(
        uniqueKeysWithValues: names.map { ($0.split(separator: " ")[0].dropFirst(2).description, $0.hasSuffix(" VALUE")) })
    }
    return [:]
  }

  @Test("a command's help names the options that it takes, and no others", arguments: Pushfleet.commands.map { $0.page.name })
  func options(name: String) throws {
    let command = try #require(Pushfleet.commands.first { $0.page.name == name })
    let page = command.page
    #expect(!page.usage.isEmpty && page.usage.allSatisfy { $0.hasPrefix("pushfleet \(name)") }, "\(page.usage)")
    #expect(page.example.contains("pushfleet \(name)"))
    let forms: [String?] = page.actions.isEmpty ? [nil] : page.actions
    let known = forms.reduce(into: [:]) { $0.merge(Self.known(command, $1)) { first, _ in first } }
    let shown = Dictionary(uniqueKeysWithValues: page.options.map { ($0.name, $0.value != nil) })
    #expect(shown == known)
  }

  private static let page = CommandPage(
    "x", "does x",
    forms: [
      .action("[list]", "--config", ["--state"], ["--all"], .hidden(["--id"])),
      .action("pause|resume", .group("OPTIONS", ["--since"]), "ID"),
    ],
    """
    One sentence that is longer than a line. Another
    one.

    Another paragraph.
    """,
    [
      .option("config", "FILE", "the configuration, wherever it is"),
      .option("state", "STATE", in: "gone|stale", "in which state"), .flag("all", "all"), .option("since", "TIME"),
      .operand("ID", "only these"), .option("id", "ID"),
    ],
    example: "pushfleet x list --config pushfleet.json5 --state gone")

  @Test("what a page declares is its forms, what they take, and what completions offer")
  func page() throws {
    let page = Self.page
    #expect(page.actions == ["list", "pause", "resume"])
    #expect(
      page.usage == [
        "pushfleet x [list] --config FILE [--state gone|stale] [--all]", "pushfleet x pause|resume [OPTIONS] ID",
      ])
    #expect(page.options.map(\.name) == ["config", "state", "all", "since", "id"] && page.operands.map(\.name) == ["ID"])
    #expect(page.options.map(\.knownValue) == ["FILE", "gone|stale", nil, "TIME", "ID"])
    let listed = try page.options(["--state=gone", "--all", "--id", "1"])
    #expect(listed.action == "list" && listed["state"] == "gone" && listed["id"] == "1" && listed.has("all"))
    let resumed = try page.options(["resume", "--since", "2h", "a", "b"])
    #expect(resumed.action == "resume" && resumed["since"] == "2h" && resumed.operands == ["a", "b"])
    for words in [["list", "a"], ["list", "--since", "2h"], ["resume", "--all"], ["drop"]] {
      #expect(throws: CommandFailure.self, "\(words)") { try page.options(words) }
    }
  }

  @Test("the help fits the terminal, whatever its width, and says the same words", arguments: [20, 60, 80, 100, 250])
  func width(columns: Int) {
    for page in Pushfleet.commands.map({ $0.page }) {
      let fitted = HelpText(width: columns).text(page)
      #expect(Self.words(fitted) == Self.words(HelpText(width: HelpText.widest).text(page)), "\(page.name)")
      // An option and its longest word need as much.
      for line in fitted.split(separator: "\n") where columns >= 80 || columns >= 60 && !line.contains("'") {
        #expect(line.count <= max(79, min(columns, HelpText.widest) - 1), "\(line)")
      }
    }
  }

  @Test("the help's blocks are filled, each in its way")
  func blocks() {
    let fitted = """
      Usage: pushfleet x [list] --config FILE
                 [--state gone|stale] [--all]
             pushfleet x pause|resume [OPTIONS]
                 ID

      One sentence that is longer than a line.
      Another one.

      Another paragraph.

        --config FILE  the configuration, wherever it
                       is
        --state STATE  in which state
        --all          all
        ID             only these

      Example: pushfleet x list --config \\
        pushfleet.json5 --state gone
      """
    #expect(HelpText(width: 48).text(Self.page) == fitted)
  }

  /// Without the backslashes at which the shell goes on.
  private static func words(_ text: String) -> [Substring] { text.split(whereSeparator: \.isWhitespace).filter { $0 != "\\" } }

  @Test("an example that is broken is the same command for the shell", arguments: Pushfleet.commands.map { $0.page.name })
  func example(name: String) throws {
    let command = try #require(Pushfleet.commands.first { $0.page.name == name })
    let example = command.page.example
    // What the shell makes of a line, without a word of it being run.
    func words(_ line: String) throws -> String {
      let script = "pushfleet() { printf '[%s]' \"$@\"; cat; }; man() { cat; }\n" + line.replacing(" > ", with: " to ")
      return try ChildProcess.run(["/bin/bash", "-c", script]).output
    }
    let broken = WrappedText.command(example, width: 40)
    #expect(try words(broken) == words(example) && !words(example).isEmpty)
    #expect(broken.contains("\\\n") || example.count < 40)
  }

  @Test("the list of commands fits 80 columns")
  func overview() throws {
    let lines = try RegistrySite().run(["help"], isConfigured: false).output.split(separator: "\n")
    #expect(lines.allSatisfy { $0.count < 80 } && lines.count > Pushfleet.commands.count)
  }

  @Test("exit statuses are the same in the help, in the manual and in docs/operate/install.md")
  func exitStatuses() throws {
    func words(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
    let site = try RegistrySite()
    let document = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/operate/install.md")
    let texts = [
      try site.run(["help"], isConfigured: false).output, try site.run(["manual"], isConfigured: false).output,
      try String(contentsOf: document.standardized, encoding: .utf8),
    ]
    for text in texts { #expect(words(text).contains(ExitStatus.words), "\(text)") }
    for line in texts[0].split(separator: "\n").suffix(4) { #expect(line.count < 80) }
  }

  @Test("the manual and the completions of each shell name every command")
  func everyCommand() throws {
    let site = try RegistrySite()
    for words in [["manual"], ["completions", "bash"], ["completions", "zsh"], ["completions", "fish"]] {
      let ended = try site.run(words, isConfigured: false)
      #expect(ended.status == 0 && ended.errors.isEmpty)
      for command in Pushfleet.commands { #expect(ended.output.contains(command.page.name), "\(words): \(command.page.name)") }
    }
    let manual = try site.run(["manual"], isConfigured: false).output
    #expect(!manual.split(separator: "\n").contains { $0.hasPrefix("'") })
    let requests: Set<Substring> = [".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".I", ".RI", ".nf", ".fi"]
    let used = manual.split(separator: "\n").filter { $0.hasPrefix(".") }.map { $0.split(separator: " ")[0] }
    #expect(requests.isSuperset(of: used))
  }

  static let slips: [(words: [String], said: String)] = [
    (["sned"], "did you mean `pushfleet send`?"), (["vesion"], "did you mean `pushfleet version`?"),
    (["xyzzy"], "`pushfleet help` lists them"), (["help", "xyzzy"], "unknown command"),
    (["devices", "imprt"], "did you mean import?"),
    (["send", "--lnae", "high"], "did you mean --lane?"), (["send", "--xyzzy"], "; known: --app VALUE"),
    (["send", "--app", "com.example.ap", "-"], "did you mean com.example.app?"), (["completions", "tcsh"], "bash, zsh, fish"),
    (["feedback", "--follow", "--peek"], "exclude"), (["feedback", "--event", "Gone"], "NotRegistered or"),
    (["feedback", "--peek", "--exec", "true"], "exclude"), (["send", "--ids", "--wait", "-"], "exclude"),
    (["devices", "import", "--rejects", "r", "a", "b"], "one by one"),
    (["simulate", "apns", "--self-signed", "x", "--key", "k"], "excludes"),
  ]

  @Test("a slip is answered with what may have been meant, and status 64")
  func slips() throws {
    let site = try RegistrySite()
    for (words, said) in Self.slips {
      let ended = try site.run(words, isConfigured: words.contains("--app"))
      #expect(ended.status == 64 && ended.errors.contains(said), "\(words): \(ended.errors)")
    }
  }
}
