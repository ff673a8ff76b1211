/// Hashes that are the same in each process.
enum StableHash {
  /// FNV-1a with 64 bits.
  static func of(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  /// Spreads a number over all 64 bits (the last step of SplitMix64).
  static func mix(_ number: UInt64) -> UInt64 {
    var mixed = number
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// The natural logarithm of a hash as a fraction of 2^64, at most 0, to six digits.
  static func logarithm(_ hash: UInt64) -> Double {
    let fraction = (Double(hash) + 1) * 0x1p-64
    let part = (fraction.significand - 1) / (fraction.significand + 1)
    let square = part * part
    let series = 1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square / 11))))
    return Double(fraction.exponent) * 0.693_147_180_559_945_3 + 2 * part * series
  }
}
