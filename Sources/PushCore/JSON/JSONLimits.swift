/// What a document may cost at most. Each bound is checked before the work that it bounds.
public struct JSONLimits: Sendable, Equatable {
  /// Bytes of the whole body.
  public var bytes: Int
  /// Levels of nesting; `{"a":[]}` has two.
  public var depth: Int
  /// Values and member names together.
  public var nodes: Int

  public init(bytes: Int = 512 * 1024, depth: Int = 32, nodes: Int = 100_000) {
    self.bytes = min(bytes, Int(UInt32.max) - 1)
    self.depth = depth
    self.nodes = min(nodes, JSONNode.most - 1)
  }
}

/// Why a body isn't a document: the offset of the first byte at fault (the length of the body where it ends too early), in bytes, and
/// the rule in words. Holds at most a short, escaped excerpt of the input.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  public let offset: Int
  public let reason: String

  public init(offset: Int, reason: String) {
    self.offset = offset
    self.reason = reason
  }

  public var description: String { "\(reason) at byte \(offset)" }
}
