/// A form of a command: its options and operands, in order.
struct UsageForm: Sendable {
  /// A literal that begins with dashes is an option, any other an operand; an array is optional.
  indirect enum Item: Sendable, ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
    case option(String)
    case operand(String)
    case optional([Item])
    case together([Item])
    case either([Item])
    /// Several items, shown under one name.
    case group(String, [Item])
    /// Accepted, but not shown.
    case hidden([Item])

    init(stringLiteral text: String) { self = text.hasPrefix("--") ? .option(String(text.dropFirst(2))) : .operand(text) }
    init(arrayLiteral items: Item...) { self = .optional(items) }
  }

  /// `import`; or `pause|resume` for actions with the same form; or `[list]` for the default action.
  private let action: String?
  private let items: [Item]

  static func action(_ action: String, _ items: Item...) -> UsageForm { UsageForm(action: action, items: items) }
  static func form(_ items: Item...) -> UsageForm { UsageForm(action: nil, items: items) }

  var actions: [String] { (action ?? "").split { "[]|".contains($0) }.map(String.init) }
  var isDefault: Bool { action?.hasPrefix("[") == true }
  /// Without dashes.
  var options: [String] { items.flatMap(\.options) }
  var takesOperands: Bool { !operands.isEmpty }
  var takesFiles: Bool { operands.contains { $0.hasPrefix("FILE") } }
  private var operands: [String] { items.flatMap(\.operands) }

  /// The form after the command's name, in pieces that stay on one line.
  func pieces(_ value: (String) -> String?) -> [String] {
    [action].compactMap(\.self)
      + items.flatMap { item -> [String] in
        let text = item.text(value)
        return switch item {
        case .either: ["(\(text))"]
        case .optional, .group: [text]
        case .option, .operand, .together: text.split(separator: " ").map(String.init)
        case .hidden: []
        }
      }
  }
}

extension UsageForm.Item {
  private var parts: [UsageForm.Item] {
    switch self {
    case .option, .operand: []
    case .optional(let items), .together(let items), .either(let items), .group(_, let items), .hidden(let items): items
    }
  }

  var options: [String] {
    if case .option(let name) = self { [name] } else { parts.flatMap(\.options) }
  }

  fileprivate var operands: [String] {
    if case .operand(let name) = self { [name] } else { parts.flatMap(\.operands) }
  }

  /// - Parameter value: returns the name of an option's value; nil for a flag.
  fileprivate func text(_ value: (String) -> String?) -> String {
    switch self {
    case .option(let name): "--\(name)\(value(name).map { " \($0)" } ?? "")"
    case .operand(let text): text
    case .optional(let items): "[\(items.map { $0.text(value) }.joined(separator: " "))]"
    case .together(let items): items.map { $0.text(value) }.joined(separator: " ")
    case .either(let items): items.map { $0.text(value) }.joined(separator: " | ")
    case .group(let name, _): "[\(name)]"
    case .hidden: ""
    }
  }
}
