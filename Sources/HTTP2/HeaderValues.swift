/// The values of a template's variable headers for one request, in the template's order.
/// Reused from request to request, so filling it allocates nothing.
public struct HeaderValues {
  private(set) var bytes: [UInt8] = []
  /// Bounds of each value in `bytes`; -1 as the end of an absent one.
  private var bounds: [(start: Int32, end: Int32)] = []

  public init() {}

  public var count: Int { bounds.count }

  /// Where a value lies in `bytes`; nil when it is absent.
  func range(_ index: Int) -> Range<Int>? {
    let (start, end) = bounds[index]
    return end < 0 ? nil : Int(start)..<Int(end)
  }

  private mutating func end(from start: Int) { bounds.append((Int32(start), Int32(bytes.count))) }

  public mutating func append(_ value: [UInt8]) {
    let start = bytes.count
    bytes.append(contentsOf: value)
    end(from: start)
  }

  /// A value put together from pieces: `/3/device/` and a token.
  public mutating func append(_ prefix: [UInt8], _ rest: [UInt8]) {
    let start = bytes.count
    bytes.append(contentsOf: prefix)
    bytes.append(contentsOf: rest)
    end(from: start)
  }

  public mutating func append(_ value: some Sequence<UInt8>) {
    let start = bytes.count
    bytes.append(contentsOf: value)
    end(from: start)
  }

  /// A value that is written where it is to be.
  public mutating func append(writing write: (inout [UInt8]) -> Void) {
    let start = bytes.count
    write(&bytes)
    end(from: start)
  }

  /// A decimal number: `content-length`, `apns-expiration`.
  public mutating func append(decimal value: Int64) {
    let start = bytes.count
    if value < 0 { bytes.append(0x2d) }
    // The power of ten of the first digit, then digit by digit.
    var magnitude = value.magnitude
    var power: UInt64 = 1
    while magnitude / power >= 10 { power *= 10 }
    while power > 0 {
      bytes.append(UInt8(truncatingIfNeeded: 0x30 + magnitude / power))
      magnitude %= power
      power /= 10
    }
    end(from: start)
  }

  /// The header is left out of this request.
  public mutating func appendAbsent() { bounds.append((0, -1)) }

  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    bounds.removeAll(keepingCapacity: true)
  }

  /// Takes over what `other` holds, into storage that is there already.
  mutating func replace(with other: borrowing HeaderValues) {
    removeAll()
    bytes.append(contentsOf: other.bytes)
    bounds.append(contentsOf: other.bounds)
  }
}
