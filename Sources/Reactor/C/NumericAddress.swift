import Glibc

/// An IPv4 or IPv6 address as bytes in network order: 4 or 16.
public enum NumericAddress {
  /// - Parameter text: without brackets, port, and zone.
  /// - Returns: nil for a name.
  public static func bytes(_ text: String) -> [UInt8]? {
    for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
      var bytes = [UInt8](repeating: 0, count: count)
      if inet_pton(family, text, &bytes) == 1 { return bytes }
    }
    return nil
  }

  /// True if the address may belong to a host of the Internet; nil for a name.
  public static func isPublic(_ text: String) -> Bool? { Resolver.numeric(Endpoint(host: text, port: 443)).map(\.isPublic) }
}
