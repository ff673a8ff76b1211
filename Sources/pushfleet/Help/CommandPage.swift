/// A command's declaration. Parsing, help, manual page and completions are derived from it.
struct CommandPage: Sendable {
  enum Block: Sendable, ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
    /// Empty lines separate paragraphs.
    case text(String)
    case list([PageEntry])

    init(stringLiteral text: String) { self = .text(text) }
    init(arrayLiteral entries: PageEntry...) { self = .list(entries) }
  }

  let name: String
  let summary: String
  let forms: [UsageForm]
  let blocks: [Block]
  let example: String
  /// True if the action follows the command's name directly; otherwise it is an ordinary operand.
  let beginsWithAction: Bool

  init(
    _ name: String, _ summary: String, forms: [UsageForm], beginsWithAction: Bool = true, _ blocks: Block..., example: String
  ) {
    self.name = name
    self.summary = summary
    self.forms = forms
    self.blocks = blocks
    self.example = example
    self.beginsWithAction = beginsWithAction
  }

  /// The actions, such as `import`.
  var actions: [String] { forms.flatMap(\.actions) }

  /// The completions from a command's second argument on, one entry for each first argument. `pattern` is a shell pattern of the
  /// first argument: an action, with `|-*` if it may be left out, or `*` if the command has no actions.
  var endings: [(pattern: String, options: [PageEntry], takesFiles: Bool)] {
    guard beginsWithAction, !actions.isEmpty else { return [("*", options, forms.contains(where: \.takesFiles))] }
    return actions.map { action in
      let forms = forms.filter { $0.actions.contains(action) }
      let known = options.filter { option in forms.contains { $0.options.contains(option.name) } }
      return (action + (forms.contains(where: \.isDefault) ? "|-*" : ""), known, forms.contains(where: \.takesFiles))
    }
  }

  var usage: [String] { forms.map { (["pushfleet", name] + $0.pieces(value)).joined(separator: " ") } }

  private var entries: [PageEntry] {
    blocks.flatMap { block -> [PageEntry] in
      if case .list(let entries) = block, entries.contains(where: \.isOption) { entries } else { [] }
    }
  }

  var operands: [PageEntry] { entries.filter { !$0.isOption } }

  var options: [PageEntry] {
    entries.reduce(into: []) { options, entry in
      if entry.isOption, !options.contains(where: { $0.name == entry.name }) { options.append(entry) }
    }
  }

  /// The name of an option's value in a form; nil for a flag.
  func value(_ name: String) -> String? { options.first { $0.name == name }.flatMap { $0.valueInForms ?? $0.value } }

  // MARK: reading

  /// Parses the words after the command's name, according to the form of the action.
  func options(_ words: [String]) throws(CommandFailure) -> Options {
    var words = words
    let action = actions.isEmpty || !beginsWithAction ? nil : try take(&words)
    let forms = forms.filter { action == nil || $0.actions.contains(action ?? "") }
    let names = Set(forms.flatMap(\.options))
    let valued = names.filter { value($0) != nil }
    var options = try Options(words, values: valued, flags: names.subtracting(valued))
    options.action = action ?? ""
    if !forms.contains(where: \.takesOperands), beginsWithAction { try options.refuseOperands() }
    return options
  }

  private func take(_ words: inout [String]) throws(CommandFailure) -> String {
    guard let word = words.first, !word.hasPrefix("-") else {
      if let byDefault = forms.first(where: \.isDefault) { return byDefault.actions[0] }
      throw CommandFailure(.usage, "name an action: \(actions.joined(separator: ", "))")
    }
    try Options.check(word, among: actions)
    words.removeFirst()
    return word
  }
}
