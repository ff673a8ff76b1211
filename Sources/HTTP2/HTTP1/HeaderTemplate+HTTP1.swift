extension HeaderTemplate {
  /// Appends the head of a request in HTTP/1.1 (RFC 9112 §3): pseudo-headers become the request line and `Host`.
  func appendHead(_ values: HeaderValues, bodySize: Int, to output: inout [UInt8]) {
    appendValue(of: ":method", values, to: &output)
    output.append(UInt8(ascii: " "))
    appendValue(of: ":path", values, to: &output)
    output += " HTTP/1.1\r\nHost: ".utf8
    appendValue(of: ":authority", values, to: &output)
    for index in fields.indices where !fields[index].isPseudo && !names[index].elementsEqual("content-length".utf8) {
      guard let value = value(index, values) else { continue }
      output += "\r\n".utf8
      output += names[index]
      output += ": ".utf8
      Self.append(value, to: &output)
    }
    output += "\r\ncontent-length: \(bodySize)\r\n\r\n".utf8
  }

  private func appendValue(of name: String, _ values: HeaderValues, to output: inout [UInt8]) {
    guard let index = names.firstIndex(where: { $0.elementsEqual(name.utf8) }) else { return }
    if let value = value(index, values) { Self.append(value, to: &output) }
  }

  private func value(_ index: Int, _ values: HeaderValues) -> ArraySlice<UInt8>? {
    guard fields[index].variable >= 0 else { return constants[index][...] }
    return values.range(fields[index].variable).map { values.bytes[$0] }
  }

  /// Line breaks become spaces: nothing in a value can begin another header.
  private static func append(_ value: ArraySlice<UInt8>, to output: inout [UInt8]) {
    for byte in value { output.append(byte == 0 || byte == 0x0A || byte == 0x0D ? 0x20 : byte) }
  }
}
