/// JSON for people, safe on a terminal: escapes characters that would move the cursor or change the writing direction.
extension JSONDocument {
  /// A value over several lines, two spaces for each level. Arrays of short scalars stay on one line.
  /// - Parameter margin: of the line on which the value begins.
  public func indented(_ node: Int, _ margin: String = "") -> String {
    let inner = margin + "  "
    switch kind(node) {
    case .null, .true, .false, .number: return text(node)
    case .string: return Self.quoted(text(node))
    case .array: return inline(node) ?? Self.lines("[", elements(of: node).map { indented($0, inner) }, "]", margin)
    case .object:
      let members = members(of: node).map { "\(Self.quoted(text($0.name))): \(indented($0.value, inner))" }
      return Self.lines("{", members, "}", margin)
    }
  }

  private static func lines(_ opening: String, _ items: [String], _ closing: String, _ margin: String) -> String {
    guard !items.isEmpty else { return opening + closing }
    return opening + items.map { "\n\(margin)  \($0)" }.joined(separator: ",") + "\n" + margin + closing
  }

  /// An array on one line; nil if it is longer than 72 characters or holds containers.
  private func inline(_ array: Int) -> String? {
    let items = elements(of: array)
    guard count(array) <= 36,
      items.allSatisfy({ kind($0) != .array && kind($0) != .object && source($0).count <= 70 })
    else { return nil }
    let line = "[" + items.map { indented($0) }.joined(separator: ", ") + "]"
    return line.count <= 72 ? line : nil
  }

  private static func quoted(_ content: String) -> String {
    var text = "\""
    for scalar in content.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where scalar.isDeceptive:
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "\""
  }
}
