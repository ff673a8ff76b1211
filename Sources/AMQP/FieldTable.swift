/// An ordered field table (message headers, queue arguments), kept in its wire form.
///
/// Reading a header scans the bytes and copying a table copies one array, so a table costs one allocation however
/// many entries it has. A value of this type is always well-formed.
public struct FieldTable: Equatable, Sendable {
  /// The entries as they stand on the wire, without the length in front.
  public private(set) var encoded: [UInt8] = []

  public init() {}

  public var isEmpty: Bool { encoded.isEmpty }

  /// Adds an entry at the end; the key must have at most 255 bytes and not yet be in the table.
  public mutating func append(_ key: String, _ value: FieldValue) {
    precondition(key.utf8.count <= 255, "a field name has at most 255 bytes")
    encoded.append(UInt8(key.utf8.count))
    encoded.append(contentsOf: key.utf8)
    value.append(to: &encoded)
  }

  /// The first value under a name, decoded.
  public subscript(key: String) -> FieldValue? {
    var found: FieldValue?
    forEachEntry { bytes, entry in
      guard found == nil, bytes.equals(entry.key, key) else { return }
      var cursor = WireCursor(entry.value)
      found = FieldValue.read(&cursor, in: bytes)
    }
    return found
  }

  /// The bytes of a string header; nil when it is absent or no string.
  public func string(_ key: String) -> [UInt8]? {
    if case .string(let bytes)? = self[key] { bytes } else { nil }
  }

  /// All entries, decoded, in order.
  public var entries: [(key: [UInt8], value: FieldValue)] {
    var entries: [(key: [UInt8], value: FieldValue)] = []
    forEachEntry { bytes, entry in
      var cursor = WireCursor(entry.value)
      guard let value = FieldValue.read(&cursor, in: bytes) else { return }
      entries.append((bytes.array(entry.key), value))
    }
    return entries
  }

  /// The same table without some entries. A message published again must not carry `x-death`: when it next expires, RabbitMQ
  /// would take its way back for a cycle and keep it where nobody gets it.
  public func removing(_ keys: [String]) -> FieldTable {
    let names = keys.map { Array($0.utf8) }
    return removing { names.contains($0) }
  }

  /// The same table without the entries of certain names. A name is whatever a client sent, UTF-8 or not, and is copied as it is.
  public func removing(where isRemoved: ([UInt8]) -> Bool) -> FieldTable {
    if isEmpty { return self }
    var kept = FieldTable()
    forEachEntry { bytes, entry in
      guard !isRemoved(bytes.array(entry.key)) else { return }
      kept.encoded.append(contentsOf: bytes.array(entry.key.lowerBound - 1..<entry.value.upperBound))
    }
    return kept
  }

  private func forEachEntry(_ body: (RawSpan, (key: Range<Int>, value: Range<Int>)) -> Void) {
    let bytes = encoded.span.bytes
    var cursor = WireCursor(0..<bytes.byteCount)
    while !cursor.isAtEnd {
      let key = cursor.shortString(in: bytes)
      let start = cursor.position
      guard FieldValue.skip(&cursor, in: bytes, depth: 0) else { return }
      body(bytes, (key, start..<cursor.position))
    }
  }
}

extension FieldTable: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (String, FieldValue)...) {
    for (key, value) in elements { append(key, value) }
  }
}

extension FieldTable {
  /// Entries as they stand on the wire, without the length in front; nil when they are malformed.
  package init?(encoded: [UInt8]) {
    guard Self.isWellFormed(encoded.span.bytes, range: 0..<encoded.count, depth: 0) else { return nil }
    self.encoded = encoded
  }

  /// Copies the entries in a range of a frame; nil when a length lies, a type is unknown or they nest too deep.
  init?(validating bytes: RawSpan, range: Range<Int>, depth: Int = 0) {
    guard Self.isWellFormed(bytes, range: range, depth: depth) else { return nil }
    encoded = bytes.array(range)
  }

  /// The entries up to the first that is malformed, but for those that nest too deep.
  init(readableIn bytes: RawSpan, range: Range<Int>) {
    var cursor = WireCursor(range)
    while !cursor.isAtEnd {
      let start = cursor.position
      _ = cursor.shortString(in: bytes)
      guard !cursor.isBroken else { return }
      var beyond = cursor
      if FieldValue.skip(&cursor, in: bytes, depth: 0) {
        bytes.append(start..<cursor.position, to: &encoded)
      } else {
        guard FieldValue.skipUnread(&beyond, in: bytes) else { return }
        cursor = beyond
      }
    }
  }

  static func isWellFormed(_ bytes: RawSpan, range: Range<Int>, depth: Int) -> Bool {
    var cursor = WireCursor(range)
    while !cursor.isAtEnd {
      _ = cursor.shortString(in: bytes)
      guard !cursor.isBroken, FieldValue.skip(&cursor, in: bytes, depth: depth) else { return false }
    }
    return true
  }
}
