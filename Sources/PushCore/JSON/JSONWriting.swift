import Wire

extension JSONDocument {
  /// Appends a value compactly: no white space outside of strings, numbers digit for digit, strings with the fewest bytes that
  /// JSON allows (`\u00e9` becomes the two bytes of é). Providers count these bytes against their limits.
  public func append(_ node: Int, to output: inout [UInt8]) {
    let entry = nodes[node]
    switch entry.kind {
    case .string: appendQuoted(node, to: &output)
    case .object, .array: appendContainer(node, to: &output)
    case .null, .true, .false, .number: output.append(contentsOf: bytes[source(node)])
    }
  }

  /// Appends a string in quotes, minimally escaped. Puts other scalars in quotes as written: `5` becomes `"5"`.
  public func appendQuoted(_ node: Int, to output: inout [UInt8]) {
    if hasEscapes(node) { return output.appendJSONString(string(node)) }
    let text = bytes.span.extracting(source(node))
    output.append(addingCapacity: text.count &+ 2) {
      $0.append(UInt8(ascii: "\""))
      $0.append(copying: text)
      $0.append(UInt8(ascii: "\""))
    }
  }

  /// The source of a member from the name's opening quote to the value's closing quote. Nil if the value isn't a string, one of
  /// the two has an escape, or white space is between them.
  func plainMember(_ name: Int, _ value: Int) -> Range<Int>? {
    let (key, text) = (nodes[name], nodes[value])
    guard text.kind == .string, text.start == key.end &+ 3, !key.has(JSONNode.escaped), !text.has(JSONNode.escaped) else {
      return nil
    }
    return Int(key.start) &- 1..<Int(text.end) &+ 1
  }

  /// Copies the source without white space and rewrites only the strings.
  private func appendContainer(_ node: Int, to output: inout [UInt8]) {
    var at = Int(nodes[node].start)
    let end = Int(nodes[node].end)
    var candidate = node &+ 1
    output.reserveCapacity(output.count &+ (end &- at))
    while at < end {
      let byte = bytes[at]
      if byte == UInt8(ascii: "\"") {
        while nodes[candidate].kind != .string { candidate &+= 1 }
        appendQuoted(candidate, to: &output)
        at = Int(nodes[candidate].end) &+ 1
        candidate &+= 1
      } else {
        if byte > 0x20 { output.append(byte) }
        at &+= 1
      }
    }
  }

  public func compactCount(_ node: Int) -> Int {
    switch nodes[node].kind {
    case .null, .true, .false, .number: return source(node).count
    case .string where !hasEscapes(node): return source(node).count &+ 2
    case .string, .object, .array: break
    }
    var scratch: [UInt8] = []
    append(node, to: &scratch)
    return scratch.count
  }

  /// Bytes of a string as UTF-8 after unescaping, or of another value as compact JSON.
  func contentCount(_ value: Int) -> Int { kind(value) == .string ? utf8Count(value) : compactCount(value) }

  /// Bytes of an object's keys and values, without JSON's punctuation. A member whose value is null doesn't count.
  /// - Parameters:
  ///   - ignored: names of members that don't count.
  ///   - free: the value of another one.
  func contentCount(of object: Int, without ignored: Set<Int>, _ free: Int? = nil) -> Int {
    var bytes = 0
    for (name, value) in members(of: object) where value != free && kind(value) != .null && !ignored.contains(name) {
      bytes += utf8Count(name) + contentCount(value)
    }
    return bytes
  }
}

extension [UInt8] {
  /// Appends UTF-8 as a quoted JSON string with the fewest bytes: escapes quote, backslash and controls below U+0020 only (RFC
  /// 8259 §7).
  public mutating func appendJSONString(_ content: [UInt8]) {
    append(UInt8(ascii: "\""))
    for byte in content {
      if byte >= 0x20, byte != 0x22, byte != 0x5C { append(byte) } else { appendEscape(byte) }
    }
    append(UInt8(ascii: "\""))
  }
}
