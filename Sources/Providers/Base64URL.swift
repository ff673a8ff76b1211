/// Base64 with the URL alphabet and no padding (RFC 4648 §5), as JSON Web Tokens want it.
enum Base64URL {
  static let alphabet = [UInt8]("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  static func append(_ bytes: [UInt8], to out: inout [UInt8]) {
    var index = 0
    while index + 2 < bytes.count {
      let word = UInt32(bytes[index]) << 16 | UInt32(bytes[index + 1]) << 8 | UInt32(bytes[index + 2])
      for shift in stride(from: 18, through: 0, by: -6) { out.append(alphabet[Int(word >> UInt32(shift)) & 63]) }
      index += 3
    }
    switch bytes.count - index {
    case 1:
      let word = UInt32(bytes[index]) << 16
      for shift in [18, 12] as [UInt32] { out.append(alphabet[Int(word >> shift) & 63]) }
    case 2:
      let word = UInt32(bytes[index]) << 16 | UInt32(bytes[index + 1]) << 8
      for shift in [18, 12, 6] as [UInt32] { out.append(alphabet[Int(word >> shift) & 63]) }
    default: break
    }
  }
}
