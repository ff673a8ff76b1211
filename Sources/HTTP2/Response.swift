/// An answer: its status, the headers asked for and the beginning of its body.
public struct Response: Sendable {
  public var status = 0
  /// At most `ClientConfiguration.maxResponseBody` bytes.
  public internal(set) var body: [UInt8] = []

  /// Values of the kept headers, one after the other; an empty array costs no allocation.
  var headerBytes: [UInt8] = []
  /// Bounds in `headerBytes` of kept header `i`: lower at `2i`, upper plus one at `2i + 1`; zero for an absent one.
  var headerBounds = SIMD16<UInt16>()

  static let keptHeaderLimit = 8
  static let headerBytesLimit = 8 * 1024

  public init(status: Int = 0, body: [UInt8] = []) {
    self.status = status
    self.body = body
  }

  /// The first value of the header that stands at `index` in `ClientConfiguration.keptResponseHeaders`.
  public func header(_ index: Int) -> [UInt8]? {
    let upper = Int(headerBounds[2 * index + 1])
    guard upper > 0 else { return nil }
    return Array(headerBytes[Int(headerBounds[2 * index])..<upper - 1])
  }

  /// Keeps the first value; one that doesn't fit is as good as absent.
  mutating func keep(_ value: some Collection<UInt8>, at index: Int) {
    guard headerBounds[2 * index + 1] == 0, headerBytes.count + value.count <= Self.headerBytesLimit else { return }
    headerBounds[2 * index] = UInt16(headerBytes.count)
    headerBytes.append(contentsOf: value)
    headerBounds[2 * index + 1] = UInt16(headerBytes.count + 1)
  }

  /// The answer itself, and not what may come before it.
  var isFinal: Bool { status >= 200 }

  /// A status line; false for one that isn't of three digits, is not HTTP/2's (101), or comes after the final one. A further header
  /// block follows an informational one (RFC 9110 §15.2).
  mutating func begin(statusDigits: some Collection<UInt8>) -> Bool {
    guard !isFinal else { return false }
    var number = 0
    for digit in statusDigits {
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
