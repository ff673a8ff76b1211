/// The addresses that begin with the same bits.
public struct AddressBlock: Hashable, Sendable {
  private let prefix: [UInt8]
  private let length: Int
  /// Bytes of an address; nil for any.
  private let size: Int?

  /// - Parameter prefix: at least as many bytes as `length` bits need.
  init(_ prefix: [UInt8], _ length: Int, size: Int? = nil) { (self.prefix, self.length, self.size) = (prefix, length, size) }

  /// - Parameter text: an address, or a network such as `10.0.0.0/8`.
  public init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = parts.first.flatMap({ NumericAddress.bytes(String($0)) }) else { return nil }
    let length = parts.count == 1 ? address.count * 8 : Int(parts[1]) ?? -1
    guard (0...address.count * 8).contains(length) else { return nil }
    self.init(address, length, size: address.count)
  }

  /// - Parameter address: 4 or 16 bytes.
  public func contains(_ address: some RandomAccessCollection<UInt8>) -> Bool {
    let (whole, rest) = length.quotientAndRemainder(dividingBy: 8)
    guard size ?? address.count == address.count, address.starts(with: prefix.prefix(whole)) else { return false }
    return rest == 0 || (address[address.index(address.startIndex, offsetBy: whole)] ^ prefix[whole]) >> (8 - rest) == 0
  }
}
