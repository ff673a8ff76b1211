/// What a JSON value is.
public enum JSONKind: UInt8, Sendable {
  case null, `false`, `true`, number, string, array, object

  /// The kind in words for people, with its article: `a string`.
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

/// One entry of a document's tape: a value, or the name of an object's member, in the order of the source.
///
/// An object is followed by name, value, name, value …; an array by its elements. `next` skips the subtree, so that a walk over one
/// level touches only that level.
struct JSONNode: Sendable {
  /// String: the offset after the opening quote. Otherwise the offset of the first byte.
  var start: UInt32
  /// String: the offset of the closing quote. Otherwise the offset after the last byte.
  var end: UInt32
  /// The index after this node's subtree; while the reader has the container still open, the index of its own container.
  var next: UInt32
  /// Kind in bits 0–2, flags in bits 3–7, and from bit 8 the number of elements or members of a container.
  private var meta: UInt32

  /// A string holds at least one escape, so that its content isn't a plain slice of the source.
  static let escaped: UInt32 = 1 << 3
  /// A number has a fraction or an exponent.
  static let fractional: UInt32 = 1 << 4

  /// The most nodes a tape may have: counts are kept in 24 bits.
  static let most = 1 << 24

  init(_ kind: JSONKind, start: Int, end: Int, next: Int, flags: UInt32 = 0) {
    self.start = UInt32(truncatingIfNeeded: start)
    self.end = UInt32(truncatingIfNeeded: end)
    self.next = UInt32(truncatingIfNeeded: next)
    meta = UInt32(kind.rawValue) | flags
  }

  var kind: JSONKind { JSONKind(rawValue: UInt8(meta & 7)) ?? .null }
  var count: Int { Int(meta >> 8) }
  func has(_ flag: UInt32) -> Bool { meta & flag != 0 }
  mutating func addChild() { meta &+= 1 << 8 }
}
