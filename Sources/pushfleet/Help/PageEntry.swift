/// An option or an operand of a command, with what it does.
struct PageEntry: Equatable, Sendable {
  /// Without dashes.
  var name: String
  var isOption = true
  /// How the list names its value, such as `FILE`; nil for a flag.
  var value: String?
  /// How the command's forms name its value, where that says more: `high|normal`.
  var valueInForms: String?
  /// nil where the list leaves it out.
  var words: String?

  /// - Parameter words: without them, forms and paragraphs alone name it.
  static func option(_ name: String, _ value: String, in forms: String? = nil, _ words: String? = nil) -> PageEntry {
    PageEntry(name: name, value: value, valueInForms: forms, words: words)
  }
  static func flag(_ name: String, _ words: String) -> PageEntry { PageEntry(name: name, words: words) }
  static func operand(_ name: String, _ words: String) -> PageEntry { PageEntry(name: name, isOption: false, words: words) }

  /// - Parameter more: follows what the option is everywhere.
  static func config(_ more: String = "") -> PageEntry {
    option("config", "FILE", "the configuration (or PUSHFLEET_CONFIG)" + more)
  }
  static func json(_ words: String) -> PageEntry { flag("json", words) }

  /// As the list shows it: `--app APP`, and what it does.
  var row: (head: String, words: String)? {
    words.map { (isOption ? "--\(name)\(value.map { " \($0)" } ?? "")" : name, $0) }
  }

  /// Where the value is one of a few words.
  var choices: [String] {
    let words = (valueInForms ?? value ?? "").split(separator: "|").map(String.init)
    return words.count > 1 ? words : []
  }

  /// What the value is, as far as that is known.
  var knownValue: String? { choices.isEmpty ? value : choices.joined(separator: "|") }

  var takesFile: Bool { value == "FILE" || value == "FOLDER" }
}
