import Wire

/// The Huffman code of HPACK (RFC 7541, appendix B). It is canonical: codes of the same length are consecutive, in the order of
/// their symbols, so the lengths define it.
enum Huffman {
  private static let lengths: [UInt8] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28,
    28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7,
    6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24,
    23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22,
    23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27,
    26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
    24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
  ]
  private static let shortest = 5
  private static let longest = 30
  /// The symbol that marks the end of a string, and must not be in it.
  private static let endOfString: UInt16 = 256

  /// The codes of one length: the first one, their number, and the place of their symbols in `symbols`.
  private struct Group {
    var first: UInt64 = 0
    var count: UInt64 = 0
    var place = 0
  }

  private static let symbols: [UInt16] = (0...endOfString).sorted {
    (lengths[Int($0)], $0) < (lengths[Int($1)], $1)
  }

  private static let groups: [Group] = {
    var groups = [Group](repeating: Group(), count: longest + 1)
    for length in 1...longest {
      let shorter = groups[length - 1]
      groups[length].first = (shorter.first + shorter.count) << 1
      groups[length].count = UInt64(lengths.count { Int($0) == length })
      groups[length].place = shorter.place + Int(shorter.count)
    }
    return groups
  }()

  /// Appends the decoded bytes. Returns false if they end inside a symbol or have a wrong padding (RFC 7541 §5.2).
  static func decode(_ bytes: RawSpan, to output: inout [UInt8]) -> Bool {
    let (groups, symbols) = (groups, symbols)
    var (bits, available) = (UInt64(0), 0)
    var offset = 0
    while true {
      while available <= 56, offset < bytes.byteCount {
        bits = bits << 8 | UInt64(bytes.byte(at: offset))
        available += 8
        offset += 1
      }
      var length = shortest
      var code = UInt64.max
      while length <= min(longest, available) {
        code = bits >> UInt64(available - length) & (1 << UInt64(length) - 1) &- groups[length].first
        if code < groups[length].count { break }
        length += 1
      }
      guard length <= min(longest, available) else { break }
      let symbol = symbols[groups[length].place + Int(code)]
      guard symbol != endOfString else { return false }
      output.append(UInt8(symbol))
      available -= length
    }
    let padding: UInt64 = 1 << UInt64(available) - 1
    return available < 8 && bits & padding == padding
  }
}
