import Wire

extension PercentEncoding {
  /// The fields of a query or form, in order. Nil if one can't be decoded or isn't UTF-8, or if there are more than `limit`.
  static func fields(_ text: [UInt8], limit: Int = 1_000) -> [(name: [UInt8], value: [UInt8])]? {
    var fields: [(name: [UInt8], value: [UInt8])] = []
    for part in text.split(separator: UInt8(ascii: "&")) {
      let sides = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard fields.count < limit, let name = decode(sides[0], plusIsSpace: true),
        let value = sides.count == 2 ? decode(sides[1], plusIsSpace: true) : [],
        String(validating: name, as: UTF8.self) != nil, String(validating: value, as: UTF8.self) != nil
      else { return nil }
      fields.append((name, value))
    }
    return fields
  }
}
