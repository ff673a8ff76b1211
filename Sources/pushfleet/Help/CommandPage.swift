/// A command's help, taken apart: completions and the manual are made of it, so that they say what the help says.
struct CommandPage {
  struct Option: Equatable {
    /// Without dashes.
    var name: String
    /// How the help names its value, such as `FILE` or `high|normal`; nil for a flag.
    var value: String?
    /// What it does, where the help lists it.
    var words: String?

    /// Where the value is one of a few words.
    var choices: [String] {
      guard let value, value.contains("|") else { return [] }
      return value.split(separator: "|").map(String.init)
    }

    var takesFile: Bool { value == "FILE" || value == "FOLDER" }
  }

  /// What follows the options, where the help says more of it than its name.
  struct Operand: Equatable {
    var name: String
    var words: String
  }

  let name: String
  let summary: String
  /// One for each form of the command.
  let usage: [String]
  /// The words that may follow the command's name, such as `import`.
  let actions: [String]
  let paragraphs: [String]
  let operands: [Operand]
  let options: [Option]
  let example: String?

  init(_ command: any Command.Type) { self.init(name: command.name, summary: command.summary, help: command.help) }

  init(name: String, summary: String, help: String) {
    self.name = name
    self.summary = summary
    var usage: [String] = []
    var paragraphs: [String] = []
    var operands: [Operand] = []
    var listed: [Option] = []
    var mentions: [String] = []
    var example: String?
    for block in Self.blocks(help) {
      if block[0].hasPrefix("Usage:") {
        usage = Self.joined(block.map { $0.replacing("Usage:", with: "      ") }) { $0.hasPrefix("pushfleet ") }
      } else if block[0].hasPrefix("Example") {
        example = Self.joined(block).joined(separator: "\n").split(separator: ": ", maxSplits: 1).last.map(String.init)
      } else if block.contains(where: { $0.hasPrefix("  --") }) {
        let entries = Self.entries(block)
        listed += entries.filter { $0.hasPrefix("--") }.map(Self.option)
        operands += entries.filter { !$0.hasPrefix("--") }.map(Self.operand)
        mentions += entries
      } else {
        paragraphs.append(block.joined(separator: "\n"))
      }
    }
    self.usage = usage
    self.paragraphs = paragraphs
    self.operands = operands
    self.example = example
    actions = Self.actions(of: name, usage)
    options = Self.merged(listed, Self.mentioned(in: usage + paragraphs + mentions))
  }

  private static func blocks(_ help: String) -> [[String]] {
    help.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      .split { $0.isEmpty }.map(Array.init)
  }

  /// Lines without their indentation, those that begin nothing joined to the line before.
  private static func joined(_ lines: [String], where begins: (String) -> Bool = { _ in false }) -> [String] {
    lines.reduce(into: []) { entries, line in
      let text = String(line.drop { $0 == " " })
      if entries.isEmpty || begins(text) { entries.append(text) } else { entries[entries.count - 1] += " " + text }
    }
  }

  /// What a list names, with its words: each begins two blanks from the left, and goes on deeper.
  private static func entries(_ lines: [String]) -> [String] {
    lines.reduce(into: []) { entries, line in
      let text = String(line.drop { $0 == " " })
      if line.count - text.count == 2 || entries.isEmpty {
        entries.append(text)
      } else {
        entries[entries.count - 1] += " " + text
      }
    }
  }

  /// `--app APP  the application`: at least two blanks stand before what it does.
  private static func option(_ line: String) -> Option {
    let (head, words) = halves(line)
    let parts = head.split(separator: " ", maxSplits: 1)
    return Option(name: String(parts[0].dropFirst(2)), value: parts.count > 1 ? String(parts[1]) : nil, words: words)
  }

  private static func operand(_ line: String) -> Operand {
    let (head, words) = halves(line)
    return Operand(name: String(head), words: words ?? "")
  }

  private static func halves(_ line: String) -> (head: Substring, words: String?) {
    guard let gap = line.firstRange(of: "  ") else { return (line[...], nil) }
    return (line[..<gap.lowerBound], String(line[gap.lowerBound...].drop { $0 == " " }))
  }

  /// `--state gone|suspect`, `--token T`, `--json`, wherever they stand.
  private static func mentioned(in texts: [String]) -> [Option] {
    texts.flatMap { text in
      text.matches(of: /--([a-z][a-z-]*[a-z])(?:[ ]((?:[a-z_]+\|)+[a-z_]+|[A-Z]+(?:[:\/][A-Z]+)*)(?![A-Za-z]))?/).map { match in
        Option(name: String(match.1), value: match.2.map(String.init))
      }
    }
  }

  /// Each once; a value whose words are named anywhere is known by them.
  private static func merged(_ listed: [Option], _ mentioned: [Option]) -> [Option] {
    (listed + mentioned).reduce(into: []) { options, option in
      guard let index = options.firstIndex(where: { $0.name == option.name }) else { return options.append(option) }
      if options[index].value == nil || !option.choices.isEmpty { options[index].value = option.value ?? options[index].value }
    }
  }

  private static func actions(of name: String, _ usage: [String]) -> [String] {
    usage.reduce(into: []) { actions, line in
      guard let second = line.split(separator: " ").dropFirst(2).first else { return }
      for word in second.split(whereSeparator: { "[]|".contains($0) }).map(String.init)
      where word.allSatisfy({ $0.isLowercase || $0 == "-" }) && !word.hasPrefix("-") && !actions.contains(word) {
        actions.append(word)
      }
    }
  }
}
