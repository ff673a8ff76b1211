import Foundation
import Reactor

/// An `http://` or `https://` address with host, optional port and optional path.
public struct HTTPAddress: Sendable, Equatable {
  public var endpoint: Endpoint
  public var isTLS: Bool
  /// Percent-encoded, as it was given; without a trailing slash, empty for none.
  public var path: String

  /// Host and port, as in the header `Host`.
  package var authority: String { "\(endpoint)" }

  /// nil for other schemes, and if there is a user, query, fragment, space or byte beyond ASCII.
  package init?(_ text: String, defaultPort: Int) {
    guard text.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }), let url = URLComponents(string: text),
      let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https", let host = url.host, !host.isEmpty,
      url.user == nil, url.query == nil, url.fragment == nil
    else { return nil }
    let bracketed = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    guard let endpoint = try? Endpoint(parsing: "\(bracketed):\(url.port ?? defaultPort)") else { return nil }
    self.endpoint = endpoint
    isTLS = scheme == "https"
    path = url.percentEncodedPath
    if path.hasSuffix("/") { path.removeLast() }
  }
}
