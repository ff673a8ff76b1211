/// Bytes for a peer: machines append at the end, the link removes from the front. Keeps its storage between flushes.
public struct OutputBuffer: ~Copyable {
  public var bytes: [UInt8] = []
  /// Index of the first byte not yet removed.
  public private(set) var head = 0

  public init() {}

  public var count: Int { bytes.count - head }
  public var isEmpty: Bool { head == bytes.count }

  public mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

  public mutating func take(_ count: Int) {
    precondition(count <= self.count, "took more than the buffer holds")
    head += count
    if head == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      head = 0
    }
  }

  /// Bytes. A larger storage is released after a burst.
  static let keptCapacity = 256 * 1024
}
