/// A port and a host: a DNS name, an IPv4 address or an IPv6 address (without brackets).
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
  public var host: String
  public var port: UInt16

  public init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// Parses `https://host:port`, `host:port`, `[::1]:port` or `host`. After `https://` or `http://`, the text may end with `/`.
  /// - Parameter defaultPort: for text without a port; nil requires a port (`https` implies 443, `http` 80).
  public init(parsing text: String, defaultPort: UInt16? = nil) throws(EndpointError) {
    var rest = Substring(text)
    var fallback = defaultPort
    if let scheme = rest.firstRange(of: "://") {
      switch rest[..<scheme.lowerBound].lowercased() {
      case "https": fallback = defaultPort ?? 443
      case "http": fallback = defaultPort ?? 80
      default: throw EndpointError(reason: "the scheme is neither https nor http")
      }
      rest = rest[scheme.upperBound...]
      if rest.last == "/" { rest.removeLast() }
    }
    let portText: Substring?
    if rest.first == "[" {
      guard let closing = rest.firstIndex(of: "]") else {
        throw EndpointError(reason: "the bracket of an IPv6 address is not closed")
      }
      host = String(rest[rest.index(after: rest.startIndex)..<closing])
      guard host.contains(":") else { throw EndpointError(reason: "the brackets hold no IPv6 address") }
      let after = rest[rest.index(after: closing)...]
      guard after.isEmpty || after.first == ":" else { throw EndpointError(reason: "unexpected text after the IPv6 address") }
      portText = after.isEmpty ? nil : after.dropFirst()
    } else {
      let parts = rest.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count <= 2 else { throw EndpointError(reason: "an IPv6 address must be in brackets") }
      host = String(parts[0])
      portText = parts.count == 2 ? parts[1] : nil
    }
    guard !host.isEmpty, host.utf8.allSatisfy(Self.isHostByte) else {
      throw EndpointError(reason: "the host is empty or has an invalid character")
    }
    guard host.utf8.count <= 253, host.utf8.split(separator: UInt8(ascii: ".")).allSatisfy({ $0.count <= 63 }) else {
      throw EndpointError(reason: "the host is longer than a name can be (RFC 1035: 63 bytes between dots, 253 in all)")
    }
    if let portText {
      guard portText.utf8.allSatisfy({ (48...57).contains($0) }), let number = UInt16(portText), number > 0 else {
        throw EndpointError(reason: "the port is not a number from 1 to 65535")
      }
      port = number
    } else {
      guard let fallback else { throw EndpointError(reason: "the port is missing") }
      port = fallback
    }
  }

  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  /// Letters, digits, `-`, `.`, `_`, and `:` and `%` for IPv6 with a zone.
  private static func isHostByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 48...58, 65...90, 97...122, 45, 46, 95, 37: true
    default: false
    }
  }
}

/// Why a text isn't an endpoint. The reason contains the rule, not the text.
public struct EndpointError: Error, Equatable, Sendable, CustomStringConvertible {
  public let reason: String
  public var description: String { reason }
}
