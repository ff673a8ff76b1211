extension String {
  /// Replaces control and format characters, which a terminal would interpret.
  var printable: String {
    let isTame = unicodeScalars.allSatisfy {
      $0.properties.generalCategory != .control && $0.properties.generalCategory != .format
    }
    guard !isTame else { return self }
    var tame = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      let isWild = scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
      tame.append(isWild ? "\u{FFFD}" : scalar)
    }
    return String(tame)
  }

  init(printing bytes: [UInt8]) { self = String(decoding: bytes, as: UTF8.self).printable }
}
