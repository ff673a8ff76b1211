import Glibc

extension SocketAddress {
  /// True for a unicast address of the Internet: in no range that IANA's special-purpose registries (RFC 6890) keep from it.
  var isPublic: Bool {
    withUnsafeBytes(of: storage) { bytes in
      switch family {
      case AF_INET: Self.isPublic(v4: bytes[4..<8])
      case AF_INET6: Self.isPublic(v6: bytes[8..<24])
      default: false
      }
    }
  }

  private static func isPublic(v4 bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
    !reserved.contains { $0.contains(bytes) }
  }

  /// Addresses that stand for an IPv4 address are as public as it is.
  private static func isPublic(v6 bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
    if mapped.contains(bytes) || translated.contains(bytes) { return isPublic(v4: bytes.dropFirst(12)) }
    if sixToFour.contains(bytes) { return isPublic(v4: bytes.dropFirst(2).prefix(4)) }
    return unicast.contains(bytes) && !reservedUnicast.contains { $0.contains(bytes) }
  }

  private static let reserved = [
    Block([0], 8),  // this network
    Block([10], 8),  // private
    Block([100, 64], 10),  // a provider's NAT
    Block([127], 8),  // loopback
    Block([169, 254], 16),  // link-local, with the metadata services of clouds
    Block([172, 16], 12),  // private
    Block([192, 0, 0], 24),  // protocol assignments
    Block([192, 0, 2], 24),  // documentation
    Block([192, 88, 99], 24),  // relays of 6to4
    Block([192, 168], 16),  // private
    Block([198, 18], 15),  // benchmarks
    Block([198, 51, 100], 24),  // documentation
    Block([203, 0, 113], 24),  // documentation
    Block([224], 4),  // multicast
    Block([240], 4),  // reserved, and broadcast
  ]

  /// `::ffff:0:0/96`
  private static let mapped = Block([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff], 96)
  /// NAT64 (RFC 6052)
  private static let translated = Block([0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], 96)
  /// RFC 3056
  private static let sixToFour = Block([0x20, 0x02], 16)
  /// The only range from which IANA assigns global unicast addresses. Loopback, unique local, link-local and multicast addresses
  /// are outside.
  private static let unicast = Block([0x20], 3)
  private static let reservedUnicast = [
    Block([0x20, 0x01, 0], 23),  // protocol assignments, with Teredo
    Block([0x20, 0x01, 0x0d, 0xb8], 32),  // documentation
    Block([0x3f, 0xff, 0], 20),  // documentation
  ]

  /// The addresses that begin with the same bits.
  private struct Block {
    let prefix: [UInt8]
    let length: Int

    init(_ prefix: [UInt8], _ length: Int) {
      self.prefix = prefix
      self.length = length
    }

    func contains(_ address: Slice<UnsafeRawBufferPointer>) -> Bool {
      let whole = length / 8
      guard address.starts(with: prefix.prefix(whole)) else { return false }
      let rest = length % 8
      return rest == 0 || (address[address.startIndex + whole] ^ prefix[whole]) >> (8 - rest) == 0
    }
  }
}
