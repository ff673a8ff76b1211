import Foundation
import TestSupport
import Testing

@testable import pushfleet

@Suite("Help, completions and the manual")
struct HelpTests {
  /// What a form of a command says it knows, when it is asked for what it doesn't.
  static func known(_ command: any Command.Type, _ action: String?) -> [String: Bool] {
    var words = [action, "--no-such-option"].compactMap { $0 }
    do {
      try command.run(&words)
      Issue.record("\(command.name) \(action ?? "") takes anything")
    } catch let failure as CommandFailure {
      guard failure.status == .usage, failure.message.contains("unknown option") else {
        Issue.record("\(command.name) \(action ?? ""): \(failure.message)")
        return [:]
      }
      let names = failure.message.split(separator: "nown: ").dropFirst().last?.split(separator: ", ") ?? []
      return Dictionary(
        uniqueKeysWithValues: names.map { ($0.split(separator: " ")[0].dropFirst(2).description, $0.hasSuffix(" VALUE")) })
    } catch {
      Issue.record("\(command.name) \(action ?? ""): \(error)")
    }
    return [:]
  }

  @Test("a command's help names the options that it takes, and no others", arguments: Pushfleet.commands.map { $0.name })
  func options(name: String) throws {
    let command = try #require(Pushfleet.commands.first { $0.name == name })
    let page = CommandPage(command)
    #expect(!page.usage.isEmpty && page.usage.allSatisfy { $0.hasPrefix("pushfleet \(name)") }, "\(page.usage)")
    #expect(page.example?.contains("pushfleet \(name)") == true)
    let forms: [String?] = page.actions.isEmpty ? [nil] : page.actions
    let known = forms.reduce(into: [:]) { $0.merge(Self.known(command, $1)) { first, _ in first } }
    let shown = Dictionary(uniqueKeysWithValues: page.options.map { ($0.name, $0.value != nil) })
    #expect(shown == known)
  }

  @Test("a page's parts are found wherever the help has them")
  func page() {
    let page = CommandPage(
      name: "x", summary: "does x",
      help: """
        Usage: pushfleet x list --config FILE [--state gone|stale]
                          [--all]
               pushfleet x pause|resume ID

        One paragraph, with --since TIME in it.

          --config FILE   the configuration,
                          whichever
          --state STATE   in which state
          ID              only these (or --id ID)

        Example: pushfleet x list
        """)
    #expect(page.actions == ["list", "pause", "resume"])
    #expect(page.usage == ["pushfleet x list --config FILE [--state gone|stale] [--all]", "pushfleet x pause|resume ID"])
    #expect(
      page.options == [
        .init(name: "config", value: "FILE", words: "the configuration, whichever"),
        .init(name: "state", value: "gone|stale", words: "in which state"), .init(name: "all"),
        .init(name: "since", value: "TIME"), .init(name: "id", value: "ID"),
      ])
    #expect(page.example == "pushfleet x list")
  }

  @Test("the help fits the terminal, whatever its width, and says the same words", arguments: [20, 60, 80, 100, 250])
  func width(columns: Int) {
    for command in Pushfleet.commands {
      let fitted = HelpText(width: columns).fitted(command.help)
      #expect(Self.words(fitted) == Self.words(command.help), "\(command.name)")
      // An option and its longest word need as much.
      for line in fitted.split(separator: "\n") where columns >= 80 || columns >= 60 && !line.contains("'") {
        #expect(line.count <= max(79, min(columns, HelpText.widest) - 1), "\(line)")
      }
    }
  }

  @Test("the help's blocks are filled, each in its way")
  func blocks() {
    let help = """
      Usage: pushfleet x list --config FILE [--state gone|stale] [--all]
             pushfleet x show ID

      One sentence that is longer than a line. Another
      one.

        --config FILE  the configuration,
                       wherever it is
        --all          all

      Example: pushfleet x list --config pushfleet.json5 --state gone
      """
    let fitted = """
      Usage: pushfleet x list --config FILE
                 [--state gone|stale] [--all]
             pushfleet x show ID

      One sentence that is longer than a line.
      Another one.

        --config FILE  the configuration, wherever it
                       is
        --all          all

      Example: pushfleet x list --config \\
        pushfleet.json5 --state gone
      """
    #expect(HelpText(width: 48).fitted(help) == fitted)
  }

  /// Without the backslashes at which the shell goes on.
  private static func words(_ text: String) -> [Substring] { text.split(whereSeparator: \.isWhitespace).filter { $0 != "\\" } }

  @Test("an example that is broken is the same command for the shell", arguments: Pushfleet.commands.map { $0.name })
  func example(name: String) throws {
    let command = try #require(Pushfleet.commands.first { $0.name == name })
    let example = try #require(CommandPage(command).example)
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

  @Test("exit statuses are the same in the help, in the manual and in the README")
  func exitStatuses() throws {
    func words(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
    let site = try RegistrySite()
    let readme = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../README.md").standardized
    let texts = [
      try site.run(["help"], isConfigured: false).output, try site.run(["manual"], isConfigured: false).output,
      try String(contentsOf: readme, encoding: .utf8),
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
      for command in Pushfleet.commands { #expect(ended.output.contains(command.name), "\(words): \(command.name)") }
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
