/// The kinds of JSON values.
public enum JSONKind: UInt8, Sendable {
  case null, `false`, `true`, number, string, array, object

  /// The kind for people, with its article: `a string`.
  public var words: String {
    switch self {
    case .null: "null"
    case .false, .true: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}

/// One entry of the tape: a value, or the name of an object's member, in source order. An object is followed by name, value,
/// name, value …; an array by its elements. `next` skips the subtree.
struct JSONNode: Sendable {
  /// String: the offset after the opening quote. Otherwise the offset of the first byte.
  var start: UInt32
  /// String: the offset of the closing quote. Otherwise the offset after the last byte.
  var end: UInt32
  /// The index after this node's subtree. While the container is open: the index of its parent container.
  var next: UInt32
  /// Bits 0–2: kind; bits 3–7: flags; from bit 8: number of elements or members.
  private var meta: UInt32

  /// Flag: the string has an escape, so its content differs from its source.
  static let escaped: UInt32 = 1 << 3
  static let fractional: UInt32 = 1 << 4

  /// The maximum number of nodes: counts have 24 bits.
  static let most = 1 << 24

  init(_ kind: JSONKind, start: Int, end: Int, next: Int, flags: UInt32 = 0) {
    self.start = UInt32(truncatingIfNeeded: start)
    self.end = UInt32(truncatingIfNeeded: end)
    self.next = UInt32(truncatingIfNeeded: next)
    meta = UInt32(kind.rawValue) | flags
  }

  @inline(__always)
  var kind: JSONKind { JSONKind(rawValue: UInt8(meta & 7)) ?? .null }
  var count: Int { Int(meta >> 8) }
  func has(_ flag: UInt32) -> Bool { meta & flag != 0 }
  mutating func addChild() { meta &+= 1 << 8 }
}
