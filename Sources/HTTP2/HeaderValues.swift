/// The values of a template's variable headers for one request, in the template's order.
/// Reused from request to request, so filling it allocates nothing.
public struct HeaderValues {
  var bytes: [UInt8] = []
  /// End of each value in `bytes`; `-1` for an absent one.
  var ends: [Int] = []

  public init() {}

  public var count: Int { ends.count }

  @inline(__always)
  public mutating func append(_ value: [UInt8]) {
    bytes.append(contentsOf: value)
    ends.append(bytes.count)
  }

  /// A value put together from pieces: `/3/device/` and a token.
  @inline(__always)
  public mutating func append(_ prefix: [UInt8], _ rest: [UInt8]) {
    bytes.append(contentsOf: prefix)
    bytes.append(contentsOf: rest)
    ends.append(bytes.count)
  }

  public mutating func append(_ value: some Sequence<UInt8>) {
    bytes.append(contentsOf: value)
    ends.append(bytes.count)
  }

  /// A decimal number: `content-length`, `apns-expiration`.
  public mutating func append(decimal value: Int64) {
    var magnitude = value.magnitude
    let start = bytes.count
    repeat {
      bytes.append(UInt8(truncatingIfNeeded: 0x30 + magnitude % 10))
      magnitude /= 10
    } while magnitude > 0
    if value < 0 { bytes.append(0x2d) }
    bytes[start...].reverse()
    ends.append(bytes.count)
  }

  /// The header is left out of this request.
  public mutating func appendAbsent() { ends.append(-1) }

  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    ends.removeAll(keepingCapacity: true)
  }
}
