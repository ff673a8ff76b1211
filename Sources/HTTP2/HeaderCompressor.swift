/// Compresses the header lists of one connection's requests (HPACK, RFC 7541), in the order in which they are framed.
///
/// It stands in for nghttp2's encoder, which hashes every name and Huffman-codes every value of every request, the provider
/// token's two hundred bytes included. Here what repeats is an index, remembered per field, and what doesn't is copied.
struct HeaderCompressor {
  private struct Entry {
    var name: [UInt8] = []
    var value: [UInt8] = []
  }

  /// Bytes that the table may have, whatever the peer would allow: its default (RFC 9113 §6.5.2).
  static let largestTable = 4096
  /// What an entry counts beside its name and value (RFC 7541 §4.1).
  private static let entryOverhead = 32
  /// No table of 4,096 bytes has more entries.
  private static let mostEntries = 128

  /// Entry `n`, counted from the connection's first, lies at `n` modulo the array's size.
  private var entries = [Entry](repeating: Entry(), count: mostEntries)
  private var inserted = 0
  private var oldest = 0
  private var size = 0
  private(set) var limit = largestTable
  /// The smallest limit since the last block, to be announced with the next one (§4.2).
  private var smallestLimit: Int?

  private var template: HeaderTemplate?
  /// For each field of the template the entry that served last; a number below `oldest` for none.
  private var hints: [Int] = []
  /// Those of the template that was in use before: two kinds of requests may alternate.
  private var former: (template: HeaderTemplate?, hints: [Int]) = (nil, [])
  private var repetition = Repetition()

  /// The last block of a template that repeats, cut at its values: valid for the next one as long as the table is the same.
  private struct Repetition {
    var template: HeaderTemplate?
    var inserted = 0
    var oldest = 0
    /// The block without the values.
    var bytes: [UInt8] = []
    /// Where in `bytes` a value stands, and which.
    var cuts: [(offset: Int, variable: Int)] = []
  }

  /// The peer's SETTINGS_HEADER_TABLE_SIZE.
  mutating func setTableLimit(_ bytes: Int) {
    let bytes = min(bytes, Self.largestTable)
    guard bytes != limit else { return }
    smallestLimit = min(smallestLimit ?? bytes, bytes)
    limit = bytes
    makeRoom(0)
  }

  /// Appends the header block of one request. `values` stays as it is: passed in any other way it would be copied.
  mutating func append(_ template: HeaderTemplate, _ values: inout HeaderValues, to output: inout [UInt8]) {
    precondition(values.count == template.variableCount, "one value, or absence, per variable header of the template")
    announceLimit(to: &output)
    if template.repeats, repeatBlock(template, &values, to: &output) { return }
    if self.template !== template { take(up: template) }
    var ends: [(offset: Int, variable: Int)] = []
    let (start, insertedBefore) = (output.count, inserted)
    for index in template.fields.indices {
      let field = template.fields[index]
      if field.staticField > 0 {
        output.append(0x80 | UInt8(field.staticField))
      } else if field.variable < 0 {
        append(index, field, template.constants[index], 0..<template.constants[index].count, to: &output)
      } else if let range = values.range(field.variable) {
        append(index, field, values.bytes, range, to: &output)
        if template.repeats { ends.append((output.count, field.variable)) }
      } else {
        precondition(!field.isPseudo, "a pseudo-header can't be absent")
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

  /// - Parameter ends: where each value ends in `output`, and which it is.
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
    _ index: Int, _ field: HeaderTemplate.Field, _ bytes: [UInt8], _ value: Range<Int>, to output: inout [UInt8]
  ) {
    let hint = hints[index]
    let name = field.staticName > 0 ? field.staticName : hint >= oldest ? place(hint) : 0
    if field.indexing == .whole {
      // A constant's entry was found by its value.
      if field.variable < 0, hint >= oldest { return Self.append(place(hint), prefix: 7, 0x80, to: &output) }
      if let entry = find(index, hint, bytes, value) {
        hints[index] = entry
        return Self.append(place(entry), prefix: 7, 0x80, to: &output)
      }
    } else if name > 0 {
      Self.append(name, prefix: 4, field.indexing == .never ? 0x10 : 0, to: &output)
      return Self.appendString(bytes, value, to: &output)
    }
    appendNew(index, field, name, bytes, value, to: &output)
  }

  /// A literal that enters the table (§6.2.1), or one that is too large for it (§6.2.2).
  private mutating func appendNew(
    _ index: Int, _ field: HeaderTemplate.Field, _ name: Int, _ bytes: [UInt8], _ value: Range<Int>, to output: inout [UInt8]
  ) {
    guard let spelling = template?.names[index] else { return }
    let cost = spelling.count + value.count + Self.entryOverhead
    if cost <= limit {
      Self.append(name, prefix: 6, 0x40, to: &output)
    } else {
      Self.append(name, prefix: 4, field.indexing == .never ? 0x10 : 0, to: &output)
    }
    if name == 0 { Self.appendString(spelling, 0..<spelling.count, to: &output) }
    Self.appendString(bytes, value, to: &output)
    guard cost <= limit else { return }
    makeRoom(cost)
    entries[inserted & (Self.mostEntries - 1)] = Entry(name: spelling, value: Array(bytes[value]))
    hints[index] = inserted
    inserted += 1
    size += cost
  }

  // MARK: The table

  /// The entry of a field with this value; looked for first where it was last found.
  private func find(_ field: Int, _ hint: Int, _ bytes: [UInt8], _ value: Range<Int>) -> Int? {
    if hint >= oldest, isValue(hint, bytes, value) { return hint }
    var entry = inserted - 1
    while entry >= oldest {
      if isValue(entry, bytes, value), entries[entry & (Self.mostEntries - 1)].name == template?.names[field] { return entry }
      entry -= 1
    }
    return nil
  }

  private func isValue(_ entry: Int, _ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    let value = entries[entry & (Self.mostEntries - 1)].value
    guard value.count == range.count else { return false }
    var index = 0
    while index < value.count {
      guard value[index] == bytes[range.lowerBound &+ index] else { return false }
      index &+= 1
    }
    return true
  }

  /// The index under which the peer knows the entry at this moment: the newest comes right after the static table.
  private func place(_ entry: Int) -> Int { StaticTable.count + inserted - entry }

  /// Evicts the oldest entries as the peer will do (§4.4).
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
    if smallest < limit { Self.append(smallest, prefix: 5, 0x20, to: &output) }
    Self.append(limit, prefix: 5, 0x20, to: &output)
  }

  // MARK: Representations

  /// An integer in the low `prefix` bits of a byte and what follows it (§5.1).
  @inline(__always)
  private static func append(_ value: Int, prefix: Int, _ first: UInt8, to output: inout [UInt8]) {
    append(value, prefix: prefix, first) { output.append($0) }
  }

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

  /// Bytes that a string's length takes.
  private static func lengthSize(_ count: Int) -> Int {
    var size = 1
    var rest = count - 127
    while rest >= 0 {
      size += 1
      rest = rest >= 0x80 ? rest >> 7 : -1
    }
    return size
  }

  /// A string as it is (§5.2).
  private static func appendString(_ bytes: [UInt8], _ range: Range<Int>, to output: inout [UInt8]) {
    append(range.count, prefix: 7, 0, to: &output)
    output.append(copying: bytes.span.extracting(range))
  }
}
