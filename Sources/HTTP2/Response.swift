import Wire

/// A response: its status, the kept headers, and the beginning of its body.
public struct Response: Sendable {
  public var status = 0
  /// At most `ClientConfiguration.maxResponseBody` bytes.
  public internal(set) var body: [UInt8] = []

  /// Concatenated values of the kept headers; empty if there are none, to avoid an allocation.
  var headerBytes: [UInt8] = []
  /// Bounds in `headerBytes` of kept header `i`: lower at `2i`, upper plus one at `2i + 1`; zero for an absent header.
  var headerBounds = SIMD16<UInt16>()

  static let keptHeaderLimit = 8
  static let headerBytesLimit = 8 * 1024

  public init(status: Int = 0, body: [UInt8] = []) {
    self.status = status
    self.body = body
  }

  /// The first value of the header at `index` in `ClientConfiguration.keptResponseHeaders`.
  public func header(_ index: Int) -> [UInt8]? {
    let upper = Int(headerBounds[2 * index + 1])
    guard upper > 0 else { return nil }
    return Array(headerBytes[Int(headerBounds[2 * index])..<upper - 1])
  }

  /// Keeps the first value. A value that doesn't fit counts as absent.
  mutating func keep(_ value: RawSpan, at index: Int) {
    guard headerBounds[2 * index + 1] == 0, headerBytes.count + value.byteCount <= Self.headerBytesLimit else { return }
    headerBounds[2 * index] = UInt16(headerBytes.count)
    value.append(0..<value.byteCount, to: &headerBytes)
    headerBounds[2 * index + 1] = UInt16(headerBytes.count + 1)
  }

  /// False for an informational response (1xx).
  var isFinal: Bool { status >= 200 }

  /// Sets the status. Returns false if it isn't a number, isn't wanted (101), or follows the final one. After an
  /// informational status, a further header block follows (RFC 9110 §15.2).
  mutating func begin(statusDigits: RawSpan) -> Bool {
    guard !isFinal, statusDigits.byteCount == 3 else { return false }
    var number = 0
    for offset in 0..<3 {
      let digit = statusDigits.byte(at: offset)
      guard 0x30...0x39 ~= digit else { return false }
      number = number * 10 + Int(digit & 0xf)
    }
    status = number
    if !headerBytes.isEmpty {
      headerBytes.removeAll()
      headerBounds = SIMD16()
    }
    return 100...599 ~= status && status != 101
  }
}
