/// JSON for people, safe on a terminal: escapes characters that would move the cursor or change the writing direction.
extension JSONDocument {
  /// A value over several lines, two spaces for each level. Arrays of short scalars stay on one line.
  public func indented(_ node: Int) -> String {
    var text = ""
    write(node, indentation: "", to: &text)
    return text
  }

  private func write(_ node: Int, indentation: String, to text: inout String) {
    switch kind(node) {
    case .null, .true, .false, .number: text += self.text(node)
    case .string: Self.writeQuoted(self.text(node), to: &text)
    case .array:
      if let line = inline(node) { return text += line }
      writeContainer("[", "]", elements(of: node).map { (nil, $0) }, indentation, to: &text)
    case .object: writeContainer("{", "}", members(of: node).map { ($0.name, $0.value) }, indentation, to: &text)
    }
  }

  private func writeContainer(
    _ opening: String, _ closing: String, _ children: [(name: Int?, value: Int)], _ indentation: String, to text: inout String
  ) {
    guard !children.isEmpty else { return text += opening + closing }
    let inner = indentation + "  "
    text += opening
    for (index, child) in children.enumerated() {
      text += (index == 0 ? "\n" : ",\n") + inner
      if let name = child.name {
        Self.writeQuoted(self.text(name), to: &text)
        text += ": "
      }
      write(child.value, indentation: inner, to: &text)
    }
    text += "\n" + indentation + closing
  }

  /// An array on one line; nil if it is longer than 72 characters or holds containers.
  private func inline(_ array: Int) -> String? {
    guard count(array) <= 36 else { return nil }
    var items: [String] = []
    for element in elements(of: array) {
      guard kind(element) != .array, kind(element) != .object, source(element).count <= 70 else { return nil }
      var item = ""
      write(element, indentation: "", to: &item)
      items.append(item)
    }
    let line = "[" + items.joined(separator: ", ") + "]"
    return line.count <= 72 ? line : nil
  }

  private static func writeQuoted(_ content: String, to text: inout String) {
    text += "\""
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
    text += "\""
  }
}
