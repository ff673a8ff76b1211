/// Bytes on their way to a peer: machines append at the end, the link takes from the front.
///
/// The storage is kept between flushes, so a steady connection allocates nothing.
public struct OutputBuffer: ~Copyable {
  public var bytes: [UInt8] = []
  /// Index of the first byte not yet taken.
  public private(set) var head = 0

  public init(reserving capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  public var count: Int { bytes.count - head }
  public var isEmpty: Bool { head == bytes.count }

  public mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

  /// Removes `count` bytes from the front.
  public mutating func take(_ count: Int) {
    precondition(count <= self.count, "took more than the buffer holds")
    head += count
    if head == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      head = 0
    }
  }

  /// A burst's larger storage is given back.
  static let keptCapacity = 256 * 1024
}
