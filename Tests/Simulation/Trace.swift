import Wire

/// The trace of a run: a hash to compare two runs of a seed, and the lines if wanted.
struct Trace {
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  private(set) var lines: [String] = []
  private let keepsLines: Bool

  init(keepsLines: Bool) { self.keepsLines = keepsLines }

  /// Adds a value to the hash without a line.
  mutating func mix(_ value: Int) {
    hash = (hash ^ UInt64(bitPattern: Int64(value))) &* 0x100_0000_01B3
  }

  mutating func note(_ text: String, at now: MonotonicTime) {
    for byte in text.utf8 { mix(Int(byte)) }
    mix(Int(now.nanoseconds))
    if keepsLines { lines.append("\(Double(now.nanoseconds / 1_000_000 - 1_000_000) / 1000) \(text)") }
  }
}
