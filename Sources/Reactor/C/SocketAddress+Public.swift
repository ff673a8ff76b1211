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
    AddressBlock([0], 8),  // this network
    AddressBlock([10], 8),  // private
    AddressBlock([100, 64], 10),  // a provider's NAT
    AddressBlock([127], 8),  // loopback
    AddressBlock([169, 254], 16),  // link-local, with the metadata services of clouds
    AddressBlock([172, 16], 12),  // private
    AddressBlock([192, 0, 0], 24),  // protocol assignments
    AddressBlock([192, 0, 2], 24),  // documentation
    AddressBlock([192, 88, 99], 24),  // relays of 6to4
    AddressBlock([192, 168], 16),  // private
    AddressBlock([198, 18], 15),  // benchmarks
    AddressBlock([198, 51, 100], 24),  // documentation
    AddressBlock([203, 0, 113], 24),  // documentation
    AddressBlock([224], 4),  // multicast
    AddressBlock([240], 4),  // reserved, and broadcast
  ]

  /// `::ffff:0:0/96`
  private static let mapped = AddressBlock([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff], 96)
  /// NAT64 (RFC 6052)
  private static let translated = AddressBlock([0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], 96)
  /// RFC 3056
  private static let sixToFour = AddressBlock([0x20, 0x02], 16)
  /// The only range from which IANA assigns global unicast addresses. Loopback, unique local, link-local and multicast addresses
  /// are outside.
  private static let unicast = AddressBlock([0x20], 3)
  private static let reservedUnicast = [
    AddressBlock([0x20, 0x01, 0], 23),  // protocol assignments, with Teredo
    AddressBlock([0x20, 0x01, 0x0d, 0xb8], 32),  // documentation
    AddressBlock([0x3f, 0xff, 0], 20),  // documentation
  ]
}
