import Foundation
import Reactor

/// `http://` or `https://`, a host, and perhaps a port and a path.
public struct HTTPAddress: Sendable, Equatable {
  public var host: String
  public var port: UInt16
  public var isTLS: Bool
  /// Without a slash at its end; empty for none.
  public var path: String

  /// With the port, as in `Host`.
  package var authority: String { "\(Endpoint(host: host, port: port))" }

  /// nil for anything else, and where there is a user, a query or a fragment.
  package init?(_ text: String, defaultPort: Int) {
    guard let url = URLComponents(string: text), let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
      let host = url.host, !host.isEmpty, url.user == nil, url.query == nil, url.fragment == nil,
      url.path.utf8.allSatisfy({ (0x21..<0x7F).contains($0) })
    else { return nil }
    let port = url.port ?? defaultPort
    let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    guard let number = UInt16(exactly: port), number > 0,
      (try? Endpoint(parsing: host.contains(":") && !host.hasPrefix("[") ? "[\(host)]:\(port)" : "\(host):\(port)")) != nil
    else { return nil }
    self.host = name
    self.port = number
    isTLS = scheme == "https"
    path = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path
  }
}
