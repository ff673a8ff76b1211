/// The values of a template's variable headers for one request, in the template's order.
/// Reused from request to request, so filling it allocates nothing.
public struct HeaderValues {
  /// The values one after the other. One that is put together of several pieces is appended here and closed by `endValue`.
  public var bytes: [UInt8] = []
  /// Bounds of each value in `bytes`; -1 as the end of an absent one.
  private var bounds = InlineArray<16, Bounds>(repeating: Bounds(start: 0, end: -1))
  public private(set) var count = 0
  /// Where the value that is being written begins.
  private var start: Int32 = 0
  /// None is absent.
  private(set) var areAllPresent = true
  /// A template has no more variable headers.
  static let most = 16

  private struct Bounds {
    var start: Int32
    var end: Int32
  }

  public init() {}

  /// Where a value lies in `bytes`; nil when it is absent.
  func range(_ index: Int) -> Range<Int>? {
    let bounds = bounds[index]
    return bounds.end < 0 ? nil : Int(bounds.start)..<Int(bounds.end)
  }

  /// What was appended to `bytes` since the last value is the next one.
  public mutating func endValue() {
    bounds[count] = Bounds(start: start, end: Int32(bytes.count))
    start = Int32(bytes.count)
    count += 1
  }

  public mutating func append(_ value: [UInt8]) {
    bytes.append(copying: value.span)
    endValue()
  }

  public mutating func append(_ value: some Sequence<UInt8>) {
    bytes.append(contentsOf: value)
    endValue()
  }

  /// A decimal number: `content-length`, `apns-expiration`.
  public mutating func append(decimal value: Int64) {
    // From the last digit on; nineteen and a sign are the most.
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var first = digits.count
    var magnitude = value.magnitude
    repeat {
      first &-= 1
      digits[first] = UInt8(truncatingIfNeeded: 0x30 &+ magnitude % 10)
      magnitude /= 10
    } while magnitude > 0
    if value < 0 {
      first &-= 1
      digits[first] = 0x2d
    }
    bytes.append(copying: digits.span.extracting(first..<digits.count))
    endValue()
  }

  /// The header is left out of this request.
  public mutating func appendAbsent() {
    bounds[count] = Bounds(start: 0, end: -1)
    count += 1
    areAllPresent = false
  }

  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    count = 0
    start = 0
    areAllPresent = true
  }
}
