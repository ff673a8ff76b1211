/// The names that an object may have, at most 32. A case's name is one spelling in JSON, its form with separators the other:
/// `titleLocKey` is `title_loc_key`.
public protocol FieldName: CaseIterable, RawRepresentable, Sendable where RawValue == UInt8 {
  /// True if both spellings are accepted (the FCM v1 shape, as in protocol buffers' JSON mapping); otherwise only `snake_case`.
  static var acceptsCamelCase: Bool { get }
  /// Between the words of a name: `_` by default, `-` in Apple's names (`apns-topic` for `apnsTopic`).
  static var separator: String { get }
}

extension FieldName {
  public static var acceptsCamelCase: Bool { true }
  public static var separator: String { "_" }
  /// The main spelling in JSON.
  public var wireName: String { spelling(String(describing: self), separator: Self.separator) }
}

/// A name of several words: `titleLocKey` as `title_loc_key`.
package func spelling(_ caseName: String, separator: String) -> String {
  caseName.reduce(into: "") { name, letter in
    name += letter.isASCII && letter.isUppercase ? separator + letter.lowercased() : String(letter)
  }
}

/// Finds the names of some or all of an object's fields.
struct NameTable<Field: FieldName>: Sendable {
  private struct Slot {
    /// Of the name.
    var prefix: UInt64 = 0
    var start: UInt16 = 0
    var length: UInt16 = 0
    var field: UInt8 = .max
  }

  private var slots: [Slot]
  private var text: [UInt8] = []
  let fields: [Field]

  /// The names in their main spelling, for suggestions.
  var names: [String] { fields.map(\.wireName) }

  init(_ fields: [Field] = Array(Field.allCases)) {
    self.fields = fields
    slots = Array(repeating: Slot(), count: 128)
    for field in fields {
      let name = String(describing: field)
      insert(field.wireName, field)
      if Field.acceptsCamelCase, name.contains(where: \.isUppercase) { insert(name, field) }
    }
  }

  private mutating func insert(_ name: String, _ field: Field) {
    let bytes = Array(name.utf8)
    let prefix = Bytes.prefix(bytes.span, 0..<bytes.count)
    var index = Self.hash(prefix, bytes.count)
    while slots[index].field != .max { index = (index + 1) & 127 }
    slots[index] = Slot(prefix: prefix, start: UInt16(text.count), length: UInt16(bytes.count), field: field.rawValue)
    text += bytes
  }

  @inline(__always)
  private static func hash(_ prefix: UInt64, _ length: Int) -> Int {
    Int(truncatingIfNeeded: ((prefix &+ UInt64(length)) &* 0x9E37_79B9_7F4A_7C15) &>> 57)
  }

  func field(_ node: Int, in document: borrowing JSONDocument) -> Field? {
    if document.hasEscapes(node) {
      let name = document.string(node)
      return find(name.span, 0..<name.count)
    }
    return find(document.bytes.span, document.source(node))
  }

  private func find(_ bytes: borrowing Span<UInt8>, _ name: Range<Int>) -> Field? {
    let prefix = Bytes.prefix(bytes, name)
    var index = Self.hash(prefix, name.count)
    while slots[index].field != .max {
      let slot = slots[index]
      let start = Int(slot.start)
      if slot.prefix == prefix, Int(slot.length) == name.count,
        name.count <= 8 || bytes.extracting(name).equals(text.span.extracting(start..<start &+ name.count))
      {
        return Field(rawValue: slot.field)
      }
      index = (index &+ 1) & 127
    }
    return nil
  }
}

/// The value's node for each field of an object. Null counts as absent.
public struct FieldSlots<Field: FieldName>: Sendable {
  private var nodes = InlineArray<32, Int32>(repeating: 0)
  /// One bit for each field that the object has.
  private(set) var present: UInt32 = 0

  init() {}

  public subscript(_ field: Field) -> Int? {
    // Reading the array copies all of it, and most fields are absent.
    guard present & 1 &<< UInt32(field.rawValue) != 0 else { return nil }
    return Int(nodes[Int(field.rawValue)])
  }

  mutating func set(_ field: Field, _ node: Int) {
    nodes[Int(field.rawValue)] = Int32(truncatingIfNeeded: node)
    present |= 1 &<< UInt32(field.rawValue)
  }
}
