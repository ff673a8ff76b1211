import PushCore
import Reactor

/// The push services that endpoints may name. A subscription comes from a device, so its endpoint could name any host.
public struct HostPolicy: Hashable, Sendable {
  private let isOpen: Bool
  private let names: Set<String>
  /// Beginning with a dot.
  private let suffixes: [String]

  /// Chrome's service, which is listed by default.
  private static let google = "fcm.googleapis.com"

  /// - Parameter globs: each a host's name or address, `*.` and the domain of several hosts, or `*` for every public host.
  /// - Returns: nil if a glob has another form.
  public init?(_ globs: [String]) {
    var names: Set<String> = []
    var suffixes: [String] = []
    for glob in globs.map({ $0.lowercased() }) where glob != "*" {
      let name = glob.hasPrefix("*.") ? String(glob.dropFirst(2)) : glob
      guard NumericAddress.bytes(glob) != nil || (try? Endpoint(parsing: name, defaultPort: 443))?.host == name else {
        return nil
      }
      if name == glob { names.insert(name) } else { suffixes.append("." + name) }
    }
    (isOpen, self.names, self.suffixes) = (globs.contains("*"), names, suffixes)
  }

  /// False for private addresses, and for names that only a private network knows: a proxy would resolve them there.
  private static func isPublic(_ host: String) -> Bool {
    NumericAddress.isPublic(host)
      ?? (host.contains(".") && ![".", ".localhost", ".local", ".internal"].contains { host.hasSuffix($0) })
  }

  /// - Parameter host: in small letters; IPv6 without brackets.
  public func allows(_ host: String) -> Bool {
    lists(host) || isOpen && Self.isPublic(host)
  }

  /// True if the host is allowed by more than `*`.
  private func lists(_ host: String) -> Bool {
    names.contains(host) || suffixes.contains { host.hasSuffix($0) && host.utf8.count > $0.utf8.count }
  }

  /// Ports other than 443 are for hosts that are listed by their exact names, except Google's.
  public func allows(_ origin: WebPushOrigin) -> Bool {
    allows(origin.host) && (origin.port == 443 || names.contains(origin.host) && origin.host != Self.google)
  }

  /// The addresses that the host may have.
  public func addresses(of host: String) -> AddressPolicy {
    names.contains(host) ? .any : lists(host) ? .publicOnly : .publicOfStranger
  }
}
