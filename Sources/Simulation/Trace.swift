import Wire

/// What has happened, line by line: as a hash, which two runs of a seed are compared by, and as text where it is wanted.
struct Trace {
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  private(set) var lines: [String] = []
  private let keepsLines: Bool

  init(keepsLines: Bool) { self.keepsLines = keepsLines }

  mutating func note(_ text: String, at now: MonotonicTime) {
    // FNV-1a.
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    hash = (hash ^ UInt64(bitPattern: now.nanoseconds)) &* 0x100_0000_01B3
    if keepsLines { lines.append("\(Double(now.nanoseconds / 1_000_000 - 1_000_000) / 1000) \(text)") }
  }
}
