import Reactor

/// The hosts that are reached without a proxy, in the form of the variable `NO_PROXY`: entries with commas or spaces between them.
/// An entry is a domain, which includes its subdomains; an address; a network such as `10.0.0.0/8`; or `*` for every host. A domain
/// or an IPv4 address may have a port.
public struct ProxyExceptions: Hashable, Sendable {
  private struct Entry: Hashable {
    /// In small letters, without a leading dot; nil for every host.
    let domain: String?
    /// Nil for a domain.
    let network: AddressBlock?
    /// Nil for every port.
    let port: UInt16?

    init(_ text: String) {
      let parts = text.split(separator: ":", omittingEmptySubsequences: false)
      // An IPv6 address has more colons.
      port = parts.count == 2 ? UInt16(parts[1]) : nil
      let host = port == nil ? text : String(parts[0])
      network = AddressBlock(host.filter { $0 != "[" && $0 != "]" })
      domain = host == "*" ? nil : String(host.drop { $0 == "*" }.drop { $0 == "." })
    }

    /// - Parameter address: nil for a name that is no address.
    func contains(_ name: String, _ address: [UInt8]?) -> Bool {
      if let network { return address.map(network.contains) ?? false }
      guard let domain else { return true }
      return address == nil && (name == domain || name.hasSuffix("." + domain))
    }
  }

  private let entries: [Entry]

  public init(_ text: String = "") {
    entries = text.split { $0 == "," || $0.isWhitespace }.map { Entry($0.lowercased()) }
  }

  public func contains(_ endpoint: Endpoint) -> Bool {
    guard !entries.isEmpty else { return false }
    let address = NumericAddress.bytes(endpoint.host)
    let name = endpoint.host.lowercased()
    return entries.contains { entry in
      (entry.port == nil || entry.port == endpoint.port) && entry.contains(name, address)
    }
  }
}
