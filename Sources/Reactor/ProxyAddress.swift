import Wire

/// An HTTP proxy and the user to name to it. Its description has no user and no password.
public struct ProxyAddress: Sendable, Hashable, CustomStringConvertible {
  public let endpoint: Endpoint
  /// The value of `Proxy-Authorization`.
  public var authorization: [UInt8]?

  /// Nil unless the text is `http://host:port`, with or without a port, `user@` or `user:password@` before the host, and `/`
  /// at the end. The user and the password are percent-encoded. The port is 80 by default.
  public init?(_ url: String) {
    guard url.utf8.count <= Self.longestURL, url.prefix(7).lowercased() == "http://" else { return nil }
    var place = url.dropFirst(7)
    if let end = place.lastIndex(of: "@") {
      guard let authorization = Self.authorization(place[..<end].utf8) else { return nil }
      self.authorization = authorization
      place = place[place.index(after: end)...]
    }
    guard let endpoint = try? Endpoint(parsing: "http://\(place)") else { return nil }
    self.endpoint = endpoint
  }

  public var description: String { "http://\(endpoint)" }

  /// Basic authentication (RFC 7617 §2). A user can have no colon.
  private static func authorization(_ text: Substring.UTF8View) -> [UInt8]? {
    let text = Array(text)[...]
    let colon = text.firstIndex(of: UInt8(ascii: ":")) ?? text.endIndex
    guard let user = PercentEncoding.decode(text[..<colon]), !user.contains(UInt8(ascii: ":")),
      let password = PercentEncoding.decode(text[colon...].dropFirst())
    else { return nil }
    return Array("Basic ".utf8) + Base64.encode(user + [UInt8(ascii: ":")] + password)
  }

  /// Bytes. A request with it fits into the buffer of a new socket.
  private static let longestURL = 1024
}
