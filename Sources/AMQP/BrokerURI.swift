import Wire

/// Address and credentials of a broker: `amqp[s]://user:password@host:port/vhost` (RabbitMQ URI specification). Defaults: port
/// 5672 (5671 with TLS), user and password `guest`, virtual host `/` (also if the path is only `/`). Descriptions never show
/// the password.
public struct BrokerURI: Equatable, Sendable {
  /// A name or a numeric address; IPv6 without brackets.
  public var host: String
  public var port: UInt16
  public var virtualHost: String
  public var user: String
  public var password: String
  public var isTLS: Bool
  /// True if the client's certificate proves the user (SASL EXTERNAL). `user` is then a note, or empty; `password` is empty.
  public var isExternal: Bool

  public init(
    host: String, port: UInt16? = nil, virtualHost: String = "/", user: String = "guest", password: String = "guest",
    isTLS: Bool = false, isExternal: Bool = false
  ) {
    self.host = host
    self.port = port ?? Self.defaultPort(isTLS: isTLS)
    self.virtualHost = virtualHost
    self.user = user
    self.password = password
    self.isTLS = isTLS
    self.isExternal = isExternal
  }

  static func defaultPort(isTLS: Bool) -> UInt16 { isTLS ? 5671 : 5672 }

  /// The SASL response: empty for EXTERNAL (RFC 4422, appendix A), otherwise that of PLAIN (RFC 4616).
  var response: [UInt8] { isExternal ? [] : [0] + Array(user.utf8) + [0] + Array(password.utf8) }
}

/// Why a broker URI is invalid. Names the part, never its secret content.
public struct BrokerURIError: Error, Equatable, Sendable, CustomStringConvertible {
  public let description: String

  private init(_ reason: String) { description = "broker URI\(reason)" }

  static let scheme = BrokerURIError(" must begin with amqp:// or amqps://")
  static let host = BrokerURIError(" names no valid host")
  static let port = BrokerURIError("'s port must be a number from 1 to 65535")
  static let virtualHost = BrokerURIError("'s path must be one virtual host (write %2F for a slash in its name)")
  static let query = BrokerURIError(" must have neither query nor fragment")
  static func percentEncoding(part: String) -> Self { Self("'s \(part) has a bad percent escape or is not UTF-8") }
  static func tooLong(part: String) -> Self { Self("'s \(part) is too long") }
}

extension BrokerURI {
  /// - Parameter hasCertificate: true if the client has a certificate. It then proves the user at an `amqps` address without a
  ///   password.
  public init(parsing text: String, hasCertificate: Bool = false) throws(BrokerURIError) {
    let bytes = Array(text.utf8)
    let schemes: [(prefix: String, isTLS: Bool)] = [("amqp://", false), ("amqps://", true)]
    guard let scheme = schemes.first(where: { text.lowercased().hasPrefix($0.prefix) }) else { throw .scheme }
    let rest = bytes[scheme.prefix.utf8.count...]
    guard !rest.contains(UInt8(ascii: "?")), !rest.contains(UInt8(ascii: "#")) else { throw .query }

    let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    let authority = rest[..<slash]
    let path = rest[slash...].dropFirst()
    guard !path.contains(UInt8(ascii: "/")) else { throw .virtualHost }
    let virtualHost = path.isEmpty ? "/" : try Self.decode(path, part: "virtual host")
    guard virtualHost.utf8.count <= 255 else { throw .tooLong(part: "virtual host") }

    let hasCertificate = hasCertificate && scheme.isTLS
    var user = hasCertificate ? "" : "guest"
    var password = hasCertificate ? "" : "guest"
    var hostAndPort = authority
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
      let credentials = authority[..<at]
      hostAndPort = authority[(at + 1)...]
      let colon = credentials.firstIndex(of: UInt8(ascii: ":"))
      user = try Self.decode(credentials[..<(colon ?? credentials.endIndex)], part: "user")
      password =
        try colon.map { colon throws(BrokerURIError) in
          try Self.decode(credentials[(colon + 1)...], part: "password")
        } ?? ""
      guard user.utf8.count <= 1024 else { throw .tooLong(part: "user") }
      guard password.utf8.count <= 8192 else { throw .tooLong(part: "password") }
    }

    let (host, port) = try Self.split(hostAndPort)
    self.init(
      host: host, port: port, virtualHost: virtualHost, user: user, password: password, isTLS: scheme.isTLS,
      isExternal: hasCertificate && password.isEmpty)
  }

  private static func split(_ part: ArraySlice<UInt8>) throws(BrokerURIError) -> (host: String, port: UInt16?) {
    var host: ArraySlice<UInt8>
    var rest: ArraySlice<UInt8>
    if part.first == UInt8(ascii: "[") {
      guard let end = part.firstIndex(of: UInt8(ascii: "]")) else { throw .host }
      host = part[(part.startIndex + 1)..<end]
      rest = part[(end + 1)...]
      guard host.allSatisfy({ $0.hexValue != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }) else { throw .host }
    } else {
      let colon = part.firstIndex(of: UInt8(ascii: ":")) ?? part.endIndex
      host = part[..<colon]
      rest = part[colon...]
      guard host.allSatisfy(isHostByte) else { throw .host }
    }
    guard !host.isEmpty, host.count <= 253 else { throw .host }
    let name = String(decoding: host, as: UTF8.self)
    if rest.isEmpty { return (name, nil) }
    guard rest.first == UInt8(ascii: ":") else { throw .host }
    rest = rest.dropFirst()
    guard !rest.isEmpty, rest.count <= 5, rest.allSatisfy({ (48...57).contains($0) }),
      let port = UInt16(String(decoding: rest, as: UTF8.self)), port > 0
    else { throw .port }
    return (name, port)
  }

  /// A letter, digit, `-`, `.` or `_`.
  private static func isHostByte(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...122).contains(byte | 0x20) || "-._".utf8.contains(byte)
  }

  private static func decode(_ bytes: ArraySlice<UInt8>, part: String) throws(BrokerURIError) -> String {
    guard let decoded = PercentEncoding.decode(bytes), !decoded.contains(0),
      let text = String(validating: decoded, as: UTF8.self)
    else { throw .percentEncoding(part: part) }
    return text
  }
}

extension BrokerURI: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    let address = host.contains(":") ? "[\(host)]" : host
    let path = virtualHost == "/" ? "" : virtualHost
    return "\(isTLS ? "amqps" : "amqp")://\(user.isEmpty ? "" : "\(user)@")\(address):\(port)/\(path)"
  }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: ["uri": description]) }
}
