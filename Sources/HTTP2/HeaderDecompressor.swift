import Wire

/// The names of response fields that the session tells apart.
enum ResponseFieldName: Equatable {
  case status
  /// The name's index in `ClientConfiguration.keptResponseHeaders`.
  case kept(Int8)
  case otherPseudo, other
}

/// Decompresses the header blocks of a connection's responses (HPACK, RFC 7541), in their order. Of its table it keeps the
/// values that the session reads, and the sizes of all others.
struct HeaderDecompressor {
  /// A field of the static or the dynamic table.
  private struct Field {
    var name: ResponseFieldName
    var nameSize: UInt16
    var valueSize: UInt16

    /// RFC 7541 §4.1.
    var size: Int { Int(nameSize) + Int(valueSize) + HeaderCompressor.entryOverhead }
  }

  private struct Entry {
    let field: Field
    /// Empty if nobody reads it.
    var value: [UInt8]
  }

  /// Bytes of storage that a connection keeps for its next string.
  private static let keptCapacity = 1024
  private static let statusName = Array(":status".utf8)
  private static let allFixedValues = StaticTable.fields.map { Array($0.value.utf8) }

  private let keptNames: [[UInt8]]
  /// Bit n is set if a kept name has n bytes. This check alone skips nearly all names.
  private let keptLengths: UInt64
  private let fixedValues = allFixedValues
  private var fixed: [Field] = []
  /// The newest entry is the last one. Evicted ones are in front until there are many.
  private var entries: [Entry] = []
  private var evicted = 0
  private var size = 0
  private var limit = HeaderCompressor.largestTable
  /// The latest string.
  private(set) var text: [UInt8] = []

  init(keeping names: [String]) {
    keptNames = names.map { Array($0.utf8) }
    keptLengths = keptNames.reduce(0) { $0 | 1 << UInt64(min($1.count, 63)) }
    fixed = StaticTable.fields.map { field in
      let name = Array(field.name.utf8)
      return Field(name: self.name(name.span.bytes), nameSize: UInt16(name.count), valueSize: UInt16(field.value.utf8.count))
    }
  }

  /// Takes a field's name, its value if the name is read, and its size in a header list (RFC 9113 §6.5.2). The target is lent to
  /// it, because a captured object would be retained for each field.
  typealias Receiver<Target> = (_ target: inout Target, ResponseFieldName, RawSpan, Int) -> Void

  /// Calls `received` with each field. Throws if the block is invalid; the table is useless then.
  mutating func read<Target>(
    _ block: RawSpan, into target: inout Target, _ received: Receiver<Target>
  ) throws(ConnectionFault) {
    var offset = 0
    // New limits of the table come first (RFC 7541 §4.2).
    while offset < block.byteCount, block.byte(at: offset) & 0xE0 == 0x20 {
      try limitTable(Self.integer(block, &offset, prefix: 5))
    }
    while offset < block.byteCount {
      let first = block.byte(at: offset)
      if first & 0x80 != 0 {
        try readIndexed(Self.integer(block, &offset, prefix: 7), &target, received)
      } else if first & 0xE0 == 0x20 {
        throw Self.fault("a new limit of the table after a header field")
      } else {
        try readLiteral(block, &offset, isIndexed: first & 0x40 != 0, &target, received)
      }
    }
    if text.capacity > Self.keptCapacity { text = [] }
  }

  private func readIndexed<Target>(
    _ index: Int, _ target: inout Target, _ received: Receiver<Target>
  ) throws(ConnectionFault) {
    let field = try field(index)
    if field.name == .other {
      received(&target, .other, RawSpan(), field.size)
    } else if index <= StaticTable.count {
      let values = fixedValues.span
      received(&target, field.name, values[index - 1].span.bytes, field.size)
    } else {
      let entries = entries.span
      received(&target, field.name, entries[place(index)].value.span.bytes, field.size)
    }
  }

  /// Reads a field with a literal value (RFC 7541 §6.2).
  private mutating func readLiteral<Target>(
    _ block: RawSpan, _ offset: inout Int, isIndexed: Bool, _ target: inout Target, _ received: Receiver<Target>
  ) throws(ConnectionFault) {
    let index = try Self.integer(block, &offset, prefix: isIndexed ? 6 : 4)
    let (name, nameSize): (ResponseFieldName, Int)
    if index > 0 {
      let field = try field(index)
      (name, nameSize) = (field.name, Int(field.nameSize))
    } else {
      try Self.readString(block, &offset, into: &text)
      (name, nameSize) = (self.name(text.span.bytes), text.count)
    }
    try Self.readString(block, &offset, into: &text)
    let size = nameSize + text.count + HeaderCompressor.entryOverhead
    received(&target, name, text.span.bytes, size)
    guard isIndexed else { return }
    makeRoom(size)
    guard size <= limit else { return }
    let field = Field(name: name, nameSize: UInt16(nameSize), valueSize: UInt16(text.count))
    entries.append(Entry(field: field, value: name == .other ? [] : Array(text)))
    self.size += size
  }

  private func name(_ text: RawSpan) -> ResponseFieldName {
    if !text.isEmpty, text.byte(at: 0) == UInt8(ascii: ":") {
      return text.equals(Self.statusName) ? .status : .otherPseudo
    }
    guard keptLengths &>> UInt64(min(text.byteCount, 63)) & 1 != 0,
      let index = keptNames.firstIndex(where: { text.equals($0) })
    else { return .other }
    return .kept(Int8(index))
  }

  // MARK: The table

  /// The place in `entries` of an index. The newest entry follows the static table (RFC 7541 §2.3.3).
  private func place(_ index: Int) -> Int { entries.count - (index - StaticTable.count) }

  @inline(__always)
  private func field(_ index: Int) throws(ConnectionFault) -> Field {
    guard index > 0, place(index) >= evicted else { throw fault(index) }
    return index <= StaticTable.count ? fixed[index - 1] : entries[place(index)].field
  }

  private func fault(_ index: Int) -> ConnectionFault {
    Self.fault("the index \(index) in a table of \(StaticTable.count + entries.count - evicted) header fields")
  }

  /// Evicts the oldest entries (RFC 7541 §4.4).
  private mutating func makeRoom(_ cost: Int) {
    while size + cost > limit, evicted < entries.count {
      size -= entries[evicted].field.size
      entries[evicted].value = []
      evicted += 1
    }
    guard evicted > 128 || evicted == entries.count else { return }
    entries.removeFirst(evicted)
    evicted = 0
  }

  private mutating func limitTable(_ bytes: Int) throws(ConnectionFault) {
    guard bytes <= HeaderCompressor.largestTable else { throw Self.fault("the compression table has \(bytes) bytes") }
    limit = bytes
    makeRoom(0)
  }

  // MARK: Representations

  private static func fault(_ reason: String) -> ConnectionFault { ConnectionFault(.compressionError, reason) }

  /// Reads an integer from the low `prefix` bits of a byte and the bytes after it (RFC 7541 §5.1).
  @inline(__always)
  private static func integer(_ block: RawSpan, _ offset: inout Int, prefix: Int) throws(ConnectionFault) -> Int {
    let most = 1 << prefix - 1
    let value = Int(block.byte(at: offset)) & most
    offset += 1
    return value < most ? value : try longInteger(block, &offset, value)
  }

  private static func longInteger(_ block: RawSpan, _ offset: inout Int, _ start: Int) throws(ConnectionFault) -> Int {
    var value = start
    for shift in stride(from: 0, through: 28, by: 7) {
      guard offset < block.byteCount else { throw fault("a header block ends inside a number") }
      let byte = Int(block.byte(at: offset))
      offset += 1
      value += (byte & 0x7F) << shift
      if byte & 0x80 == 0 { return value }
    }
    throw fault("a number in a header block is too large")
  }

  /// Replaces `text` with a string (RFC 7541 §5.2).
  private static func readString(
    _ block: RawSpan, _ offset: inout Int, into text: inout [UInt8]
  ) throws(ConnectionFault) {
    guard offset < block.byteCount else { throw fault("a header block ends before a string") }
    let isCoded = block.byte(at: offset) & 0x80 != 0
    let length = try integer(block, &offset, prefix: 7)
    guard length <= block.byteCount - offset else { throw fault("a header block ends inside a string") }
    let bytes = offset..<offset + length
    offset += length
    text.removeAll(keepingCapacity: true)
    if !isCoded {
      block.append(bytes, to: &text)
    } else if !Huffman.decode(block.extracting(bytes), to: &text) {
      throw fault("a string in a header block has an invalid code")
    }
  }
}
