/// Limits of a document. Each is checked before the work that it limits.
public struct JSONLimits: Sendable, Equatable {
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

/// `offset` is the first wrong byte, or the body's length if it ends too early. The reason quotes little, and escapes it.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  public let offset: Int
  public let reason: String

  public var description: String { "\(reason) at byte \(offset)" }
}
