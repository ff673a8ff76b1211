import Wire

/// Compresses the header lists of a connection's requests (HPACK, RFC 7541), in the order of framing. It
/// replaces a repeated field by its index, which it remembers for each field. It copies other values without Huffman coding.
struct HeaderCompressor {
  private struct Entry {
    var name: [UInt8] = []
    var value: [UInt8] = []
  }

  /// Maximum bytes of the table, even if the peer allows more: the default of RFC 9113 §6.5.2.
  static let largestTable = 4096
  /// Bytes of an entry's size in addition to its name and value (RFC 7541 §4.1).
  static let entryOverhead = 32
  /// The most entries that fit in 4,096 bytes.
  private static let mostEntries = 128

  /// Entry `n`, counted since the start of the connection, is at index `n` modulo the array's size.
  private var entries = [Entry](repeating: Entry(), count: mostEntries)
  private var inserted = 0
  private var oldest = 0
  private var size = 0
  private(set) var limit = largestTable
  /// The smallest limit since the last block. The next block announces it (§4.2).
  private var smallestLimit: Int?

  private var template: HeaderTemplate?
  /// The last entry used for each field of the template; a number below `oldest` for none.
  private var hints: [Int] = []
  /// The hints of the previous template, because two kinds of requests may alternate.
  private var former: (template: HeaderTemplate?, hints: [Int]) = (nil, [])
  private var repetition = Repetition()

  /// The last block of a repeating template, without its values. Valid while the table is unchanged.
  private struct Repetition {
    var template: HeaderTemplate?
    var inserted = 0
    var oldest = 0
    var bytes: [UInt8] = []
    /// For each value, its offset in `bytes` and its number.
    var cuts: [(offset: Int, variable: Int)] = []
  }

  mutating func setTableLimit(_ bytes: Int) {
    let bytes = min(bytes, Self.largestTable)
    guard bytes != limit else { return }
    smallestLimit = min(smallestLimit ?? bytes, bytes)
    limit = bytes
    makeRoom(0)
  }

  /// Appends the header block of one request. `values` is not changed; `inout` only avoids a copy.
  mutating func append(_ template: HeaderTemplate, _ values: inout HeaderValues, to output: inout [UInt8]) {
    precondition(values.count == template.variableCount, "one value, or absence, per variable header of the template")
    announceLimit(to: &output)
    if template.repeats, repeatBlock(template, &values, to: &output) { return }
    if self.template !== template { take(up: template) }
    var ends: [(offset: Int, variable: Int)] = []
    let (start, insertedBefore) = (output.count, inserted)
    output.append(addingCapacity: template.mostBytes + values.bytes.count) { output in
      for index in template.fields.indices {
        let field = template.fields[index]
        if field.staticField > 0 {
          output.append(0x80 | UInt8(field.staticField))
        } else if field.variable < 0 {
          let constant = template.constants[index]
          append(index, field, constant.span, to: &output)
        } else if let range = values.range(field.variable) {
          append(index, field, values.bytes.span.extracting(range), to: &output)
          if template.repeats { ends.append((start + output.count, field.variable)) }
        } else {
          precondition(!field.isPseudo, "a pseudo-header can't be absent")
        }
      }
    }
    if template.repeats, values.areAllPresent, inserted == insertedBefore { remember(template, values, ends, output, start) }
  }

  private mutating func repeatBlock(
    _ template: HeaderTemplate, _ values: inout HeaderValues, to output: inout [UInt8]
  ) -> Bool {
    guard repetition.template === template, repetition.inserted == inserted, repetition.oldest == oldest,
      values.areAllPresent
    else { return false }
    let pieces = repetition.bytes.span
    let bytes = values.bytes.span
    output.append(addingCapacity: pieces.count + bytes.count + 5 * repetition.cuts.count) { output in
      var piece = 0
      for (end, variable) in repetition.cuts {
        output.append(copying: pieces.extracting(piece..<end))
        piece = end
        guard let value = values.range(variable) else { continue }
        Self.append(value.count, prefix: 7, 0) { output.append($0) }
        output.append(copying: bytes.extracting(value))
      }
      output.append(copying: pieces.extracting(piece..<pieces.count))
    }
    return true
  }

  /// - Parameter ends: the end of each value in `output`, and the value's number.
  private mutating func remember(
    _ template: HeaderTemplate, _ values: borrowing HeaderValues, _ ends: [(offset: Int, variable: Int)], _ output: [UInt8],
    _ start: Int
  ) {
    repetition = Repetition(template: template, inserted: inserted, oldest: oldest)
    var piece = start
    for (end, variable) in ends {
      let count = values.range(variable)?.count ?? 0
      repetition.bytes += output[piece..<end - count - Self.lengthSize(count)]
      repetition.cuts.append((repetition.bytes.count, variable))
      piece = end
    }
    repetition.bytes += output[piece...]
  }

  private mutating func take(up template: HeaderTemplate) {
    let other = former
    former = (self.template, hints)
    self.template = template
    hints = other.template === template ? other.hints : Array(repeating: -1, count: template.fields.count)
  }

  private mutating func append(
    _ index: Int, _ field: HeaderTemplate.Field, _ value: borrowing Span<UInt8>, to output: inout OutputSpan<UInt8>
  ) {
    let hint = hints[index]
    let name = field.staticName > 0 ? field.staticName : hint >= oldest ? place(hint) : 0
    if field.indexing == .whole {
      // A constant's entry was found by its value, so it needs no comparison.
      if field.variable < 0, hint >= oldest { return Self.append(place(hint), prefix: 7, 0x80, to: &output) }
      if let entry = find(index, hint, value) {
        hints[index] = entry
        return Self.append(place(entry), prefix: 7, 0x80, to: &output)
      }
    } else if name > 0 {
      Self.append(name, prefix: 4, field.indexing == .never ? 0x10 : 0, to: &output)
      return Self.appendString(value, to: &output)
    }
    appendNew(index, field, name, value, to: &output)
  }

  /// Appends a literal that enters the table (§6.2.1), or a literal that is too large for it (§6.2.2).
  private mutating func appendNew(
    _ index: Int, _ field: HeaderTemplate.Field, _ name: Int, _ value: borrowing Span<UInt8>,
    to output: inout OutputSpan<UInt8>
  ) {
    guard let spelling = template?.names[index] else { return }
    let cost = spelling.count + value.count + Self.entryOverhead
    if cost <= limit {
      Self.append(name, prefix: 6, 0x40, to: &output)
    } else {
      Self.append(name, prefix: 4, field.indexing == .never ? 0x10 : 0, to: &output)
    }
    if name == 0 { Self.appendString(spelling.span, to: &output) }
    Self.appendString(value, to: &output)
    guard cost <= limit else { return }
    makeRoom(cost)
    entries[inserted & (Self.mostEntries - 1)] = Entry(name: spelling, value: Self.array(value))
    hints[index] = inserted
    inserted += 1
    size += cost
  }

  // MARK: The table

  private func find(_ field: Int, _ hint: Int, _ value: borrowing Span<UInt8>) -> Int? {
    if hint >= oldest, isValue(hint, value) { return hint }
    var entry = inserted - 1
    while entry >= oldest {
      if isValue(entry, value), entries[entry & (Self.mostEntries - 1)].name == template?.names[field] { return entry }
      entry -= 1
    }
    return nil
  }

  private func isValue(_ entry: Int, _ bytes: borrowing Span<UInt8>) -> Bool {
    bytes.bytes.equals(entries[entry & (Self.mostEntries - 1)].value)
  }

  /// The peer's current index of the entry. The newest entry follows the static table.
  private func place(_ entry: Int) -> Int { StaticTable.count + inserted - entry }

  /// Evicts the oldest entries as the peer does (§4.4).
  private mutating func makeRoom(_ cost: Int) {
    while size + cost > limit {
      let index = oldest & (Self.mostEntries - 1)
      size -= entries[index].name.count + entries[index].value.count + Self.entryOverhead
      entries[index] = Entry()
      oldest += 1
    }
  }

  private mutating func announceLimit(to output: inout [UInt8]) {
    guard let smallest = smallestLimit else { return }
    smallestLimit = nil
    if smallest < limit { Self.append(smallest, prefix: 5, 0x20) { output.append($0) } }
    Self.append(limit, prefix: 5, 0x20) { output.append($0) }
  }

  // MARK: Representations

  /// Appends an integer in the low `prefix` bits of a byte and the bytes after it (§5.1).
  @inline(__always)
  private static func append(_ value: Int, prefix: Int, _ first: UInt8, _ append: (UInt8) -> Void) {
    let most = 1 << prefix - 1
    guard value >= most else { return append(first | UInt8(value)) }
    append(first | UInt8(most))
    var rest = value - most
    while rest >= 0x80 {
      append(0x80 | UInt8(rest & 0x7F))
      rest >>= 7
    }
    append(UInt8(rest))
  }

  private static func lengthSize(_ count: Int) -> Int {
    var size = 1
    var rest = count - 127
    while rest >= 0 {
      size += 1
      rest = rest >= 0x80 ? rest >> 7 : -1
    }
    return size
  }

  @inline(__always)
  private static func append(_ value: Int, prefix: Int, _ first: UInt8, to output: inout OutputSpan<UInt8>) {
    append(value, prefix: prefix, first) { output.append($0) }
  }

  private static func array(_ bytes: borrowing Span<UInt8>) -> [UInt8] {
    var array: [UInt8] = []
    array.append(copying: bytes)
    return array
  }

  /// Appends a string without Huffman coding (§5.2).
  private static func appendString(_ bytes: borrowing Span<UInt8>, to output: inout OutputSpan<UInt8>) {
    append(bytes.count, prefix: 7, 0, to: &output)
    output.append(copying: bytes)
  }
}
