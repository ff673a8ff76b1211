/// An option or operand of a command, with its description.
struct PageEntry: Equatable, Sendable {
  /// Without dashes.
  var name: String
  var isOption = true
  /// The value's name in the list, such as `FILE`; nil for a flag.
  var value: String?
  /// The value's name in the forms, if more detailed: `high|normal`.
  var valueInForms: String?
  /// The description; nil if the list leaves the entry out.
  var words: String?

  /// - Parameter words: if nil, only forms and paragraphs mention the option.
  static func option(_ name: String, _ value: String, in forms: String? = nil, _ words: String? = nil) -> PageEntry {
    PageEntry(name: name, value: value, valueInForms: forms, words: words)
  }
  static func flag(_ name: String, _ words: String) -> PageEntry { PageEntry(name: name, words: words) }
  static func operand(_ name: String, _ words: String) -> PageEntry { PageEntry(name: name, isOption: false, words: words) }

  static func config(_ more: String = "") -> PageEntry {
    option("config", "FILE", "the configuration (or PUSHFLEET_CONFIG)" + more)
  }
  static func json(_ words: String) -> PageEntry { flag("json", words) }

  /// The row in the list: `--app APP`, and the description.
  var row: (head: String, words: String)? {
    words.map { (isOption ? "--\(name)\(value.map { " \($0)" } ?? "")" : name, $0) }
  }

  /// The allowed words; empty if the value is free.
  var choices: [String] {
    let words = (valueInForms ?? value ?? "").split(separator: "|").map(String.init)
    return words.count > 1 ? words : []
  }

  /// The allowed words, or the value's name.
  var knownValue: String? { choices.isEmpty ? value : choices.joined(separator: "|") }

  var takesFile: Bool { value == "FILE" || value == "FOLDER" }
}
