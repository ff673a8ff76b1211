extension String {
  /// Replaces control and format characters, which a terminal would interpret.
  var printable: String {
    func isWild(_ scalar: Unicode.Scalar) -> Bool {
      scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
    }
    guard unicodeScalars.contains(where: isWild) else { return self }
    return String(String.UnicodeScalarView(unicodeScalars.map { isWild($0) ? "\u{FFFD}" : $0 }))
  }

  init(printing bytes: [UInt8]) { self = String(decoding: bytes, as: UTF8.self).printable }
}
