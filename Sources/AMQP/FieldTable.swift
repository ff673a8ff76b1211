import Wire

/// An ordered field table (message headers, queue arguments) in its wire form. Always well-formed. A table needs one allocation
/// regardless of its number of entries: a look-up scans the bytes, and a copy copies one array.
public struct FieldTable: Equatable, Sendable {
  /// The entries in wire form, without the length prefix.
  public private(set) var encoded: [UInt8] = []

  public init() {}

  public var isEmpty: Bool { encoded.isEmpty }

  /// Appends an entry. The key must have at most 255 bytes and must not be in the table yet.
  public mutating func append(_ key: String, _ value: FieldValue) {
    precondition(key.utf8.count <= 255, "a field name has at most 255 bytes")
    encoded.append(UInt8(key.utf8.count))
    encoded.append(contentsOf: key.utf8)
    value.append(to: &encoded)
  }

  /// The first value with this name, decoded.
  public subscript(key: String) -> FieldValue? {
    var found: FieldValue?
    forEachEntry { bytes, entry in
      guard found == nil, bytes.extracting(entry.key).equals(key.utf8.span.bytes) else { return }
      var cursor = WireCursor(entry.value)
      found = FieldValue.read(&cursor, in: bytes)
    }
    return found
  }

  /// The bytes of a string entry, or nil if there is none.
  public func string(_ key: String) -> [UInt8]? {
    if case .string(let bytes)? = self[key] { bytes } else { nil }
  }

  /// The value of an integer entry, or nil if there is none.
  public func integer(_ key: String) -> Int64? {
    if case .integer(let value)? = self[key] { value } else { nil }
  }

  public var entries: [(key: [UInt8], value: FieldValue)] {
    var entries: [(key: [UInt8], value: FieldValue)] = []
    forEachEntry { bytes, entry in
      var cursor = WireCursor(entry.value)
      guard let value = FieldValue.read(&cursor, in: bytes) else { return }
      entries.append((bytes.array(entry.key), value))
    }
    return entries
  }

  /// A copy without the named entries. A republished message must not carry `x-death`: RabbitMQ would treat its next expiry as
  /// a cycle and keep the message where no consumer gets it.
  public func removing(_ keys: [String]) -> FieldTable {
    let names = keys.map { Array($0.utf8) }
    return removing { names.contains($0) }
  }

  /// A copy without the entries whose name matches. Names are raw bytes from the client and may be invalid UTF-8.
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
  /// Copies entries in wire form, without the length prefix. Returns nil if they are malformed.
  package init?(encoded: [UInt8]) {
    self.init(validating: encoded.span.bytes, range: 0..<encoded.count)
  }

  /// Copies the entries in a range of a frame. Returns nil if a length is wrong, a type is unknown, or the nesting is too deep.
  init?(validating bytes: RawSpan, range: Range<Int>, depth: Int = 0) {
    guard Self.isWellFormed(bytes, range: range, depth: depth) else { return nil }
    encoded = bytes.array(range)
  }

  /// Copies the entries before the first malformed one, without those that are nested too deep.
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
