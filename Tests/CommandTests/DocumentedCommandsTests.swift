import Foundation
import TestSupport
import Testing

@testable import pushfleet

/// Each command line of this program that a document shows is one that the program takes.
@Suite("Command lines in documents and in the help")
struct DocumentedCommandsTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private static func files(in folder: String) -> [String] {
    let found = FileManager.default.enumerator(atPath: root.appending(path: folder).path)?.compactMap { $0 as? String } ?? []
    return found.map { "\(folder)/\($0)" }.sorted()
  }

  /// Documents, and the files that carry instructions in their comments.
  private static let documents: [String] = {
    let top = (try? FileManager.default.contentsOfDirectory(atPath: root.path)) ?? []
    return (top.sorted() + files(in: "docs") + files(in: "deploy") + files(in: "dev")).filter { path in
      [".md", ".yml", ".yaml"].contains { path.hasSuffix($0) }
    }
  }()

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  // MARK: what a document shows

  /// What is wrong with the commands of a text. An option that is only mentioned needs no value.
  static func faults(_ text: String) -> [String] {
    let code = DocumentCode(text)
    let lines = code.lines.flatMap(commands).compactMap { words in fault(words).map { (words, $0) } }
    let spans = code.spans.flatMap(commands).compactMap { words in
      fault(words).flatMap { $0.hasSuffix("needs a value") ? fault(words + ["VALUE"]) : $0 }.map { (words, $0) }
    }
    return (lines + spans).map { "pushfleet \($0.joined(separator: " ")): \($1)" }
  }

  /// The commands of a line of the shell, without what surrounds them: `echo x | pushfleet send - || exit`.
  static func commands(_ line: String) -> [[String]] {
    var words: [[String]] = [[]]
    for match in line.matches(of: /'[^']*'|"[^"]*"|#.*|\|\|?|&&?|;|2?>&?|<|[^\s'"|&;<>]+(?:\|[^\s'"|&;<>]+)*/) {
      let word = String(match.0)
      if word.hasPrefix("#") { break }
      if ["|", "||", "&", "&&", ";", ">", "<", "2>", "2>&", ">&"].contains(word) {
        words.append([])
      } else {
        words[words.count - 1].append(word.trimmingCharacters(in: ["[", "]", ",", "…"]))
      }
    }
    return words.compactMap { command in
      guard let start = command.firstIndex(of: "pushfleet"), start + 1 < command.count else { return nil }
      // `docker build -t pushfleet .` has it as an operand.
      return start == 0 || command[start - 1] == "sudo" ? Array(command[(start + 1)...]) : nil
    }
  }

  // MARK: whether the program takes it

  private static let forms: [String: [String: [String: Bool]]] = Dictionary(
    uniqueKeysWithValues: Pushfleet.commands.map { command in
      let actions = command.page.actions
      let forms: [String?] = actions.isEmpty ? [nil] : actions
      return (command.page.name, Dictionary(uniqueKeysWithValues: forms.map { ($0 ?? "", HelpTests.known(command, $0)) }))
    })

  private static let others: Set = ["help", "version", "--version", "COMMAND"]

  /// What is wrong with a command's words after the program's name; nil when it is taken.
  static func fault(_ words: [String]) -> String? {
    let name = words[0]
    if others.contains(name) || words.dropFirst() == ["--help"] {
      return forms[name] != nil || others.contains(name) ? nil : "no command \(name)"
    }
    guard let forms = forms[name] else { return "no command \(name)" }
    var rest = Array(words.dropFirst())
    var actions = Array(forms.keys)
    if forms[""] == nil, let second = rest.first, !second.hasPrefix("-"), second.first?.isLowercase == true,
      !second.contains(".")
    {
      actions = second.split(separator: "|").map(String.init)
      rest.removeFirst()
    }
    for action in actions where forms[action] == nil { return "\(name) has no action \(action)" }
    // Without an action, options may be of any form.
    let known = actions.compactMap { forms[$0] }.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
    do throws(CommandFailure) {
      _ = try Options(
        rest, values: Set(known.filter(\.value).keys), flags: Set(known.filter { !$0.value }.keys))
    } catch { return error.message }
    return nil
  }

  // MARK: tests

  @Test("what is no command, no action or no option is found, and what is right passes")
  func judge() {
    let text = """
      Say `pushfleet sned x`, `pushfleet send --lane`, `pushfleet devices
      imprt f`, or `pushfleet dead list|shwo`; not `docker build -t pushfleet .`:

          pushfleet send --lnae high -      # as --nothing

      ```sh
      echo "pushfleet nothing" | pushfleet send --wait - || pushfleet campaigns --all=1
      pushfleet help && pushfleet top --once --config 'a b' > x; pushfleet explain r.json
      pushfleet devices list --state gone|stale && pushfleet send --lane
      ```
      ```python
      pushfleet nothing
      ```
      """
    let faults = Self.faults(text)
    let wanted = ["--lnae", "--all", "--lane needs", "command sned", "action imprt", "action shwo"]
    #expect(faults.count == wanted.count && zip(faults, wanted).allSatisfy { $0.contains($1) }, "\(faults)")
  }

  @Test("a document shows only what the program takes", arguments: documents)
  func document(path: String) throws {
    let faults = Self.faults(try Self.text(path))
    #expect(faults.isEmpty)
  }

  @Test("documents show every command")
  func everyCommand() throws {
    let code = try Self.documents.map { DocumentCode(try Self.text($0)) }
    let shown = code.flatMap { $0.lines + $0.spans }.flatMap(Self.commands)
    let names = Set(shown.map { $0[0] })
    // Named together with another one: `pushfleet devices`, `topics`.
    let together: Set = ["topics", "groups", "manual"]
    let missing = Pushfleet.commands.map { $0.page.name }.filter { !names.contains($0) && !together.contains($0) }
    #expect(missing.isEmpty && shown.count > 50)
  }

  @Test("an option that stands by itself in a document is one of some command's or of a script's", arguments: documents)
  func options(path: String) throws {
    let known = Set(Self.forms.values.flatMap(\.values).flatMap(\.keys)).union(["help"])
    for span in DocumentCode(try Self.text(path)).spans where span.hasPrefix("--") {
      let name = String(span.dropFirst(2).prefix { $0.isLetter || $0.isNumber || $0 == "-" })
      #expect(known.contains(name) || Self.scripts.contains("--\(name)"), "--\(name)")
    }
  }

  /// The text of all scripts.
  private static let scripts = (files(in: "deploy") + files(in: "dev") + files(in: "Tests/fleetsim"))
    .filter { !documents.contains($0) }.compactMap { try? text($0) }.joined(separator: "\n")

  @Test("the example of a command's help is one that it takes", arguments: Pushfleet.commands.map { $0.page.name })
  func example(name: String) throws {
    let command = try #require(Pushfleet.commands.first { $0.page.name == name })
    let examples = Self.commands(command.page.example)
    #expect(!examples.isEmpty)
    for words in examples { #expect(Self.fault(words) == nil, "\(words)") }
  }
}
