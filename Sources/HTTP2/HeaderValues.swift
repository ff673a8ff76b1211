import Wire

/// The values of a template's variable headers for one request, in the template's order. Reused to avoid allocations.
public struct HeaderValues {
  /// All values, concatenated. A value made of several parts is appended here and ended with `endValue`.
  public var bytes: [UInt8] = []
  /// Bounds of each value in `bytes`; the end is -1 for an absent value.
  private var bounds = InlineArray<16, Bounds>(repeating: Bounds(start: 0, end: -1))
  public private(set) var count = 0
  private var start: Int32 = 0
  private(set) var areAllPresent = true
  static let most = 16

  private struct Bounds {
    var start: Int32
    var end: Int32
  }

  public init() {}

  func range(_ index: Int) -> Range<Int>? {
    let bounds = bounds[index]
    return bounds.end < 0 ? nil : Int(bounds.start)..<Int(bounds.end)
  }

  /// Ends a value: the bytes appended since the previous value.
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

  /// Appends a decimal number, for example for `content-length` or `apns-expiration`.
  public mutating func append(decimal value: Int64) {
    bytes.appendDecimal(value)
    endValue()
  }

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
