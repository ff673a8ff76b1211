import Wire

/// A browser's subscription to web push (W3C Push API), and its form as a device's token.
///
/// A token has all that a push needs: the endpoint, a zero byte, the id of the VAPID key that the subscription was made with (8
/// bytes), the public key (65 bytes) and the authentication secret (16 bytes). Devices with equal endpoints are the same device.
/// The endpoint is a secret: whoever knows it can reach the device. Logs, traces and metrics show ``name(of:)``.
public struct WebPushSubscription: Equatable, Sendable {
  /// An `https` address in ASCII, without user, fragment, or white space. Its host is in lower case, without the usual port, because
  /// the endpoint is the device's name.
  public let endpoint: [UInt8]
  /// An uncompressed point of P-256.
  public let publicKey: [UInt8]
  /// The authentication secret, 16 bytes.
  public let auth: [UInt8]

  /// WNS has endpoints of more than 1,000 bytes.
  public static let longestEndpoint = 2048
  /// The VAPID key of a subscription that isn't registered: the application's first.
  public static let noKeyID = [UInt8](repeating: 0, count: 8)
  private static let suffixLength = 1 + 8 + 65 + 16

  /// Reads a browser's `PushSubscription` object: `endpoint`, `keys.p256dh`, `keys.auth`, `expirationTime`. Accepts both alphabets
  /// of Base64, with padding or without.
  /// - Parameter node: an object in `document`.
  public init(_ document: JSONDocument, _ node: Int) throws(Rejection) {
    guard document.kind(node) == .object else { throw Self.refused("expected an object with endpoint and keys") }
    guard let endpoint = document.string("endpoint", of: node) else { throw Self.refused("endpoint: missing") }
    guard let keys = document.value("keys", of: node), document.kind(keys) == .object else {
      throw Self.refused("keys: missing, expected an object with p256dh and auth")
    }
    guard let p256dh = document.string("p256dh", of: keys) else { throw Self.refused("keys.p256dh: missing") }
    guard let auth = document.string("auth", of: keys) else { throw Self.refused("keys.auth: missing") }
    try self.init(endpoint: endpoint, p256dh: p256dh, auth: auth)
  }

  /// - Parameters:
  ///   - p256dh: Base64 of the public key.
  ///   - auth: Base64 of the authentication secret.
  public init(endpoint: [UInt8], p256dh: [UInt8], auth: [UInt8]) throws(Rejection) {
    guard let key = Base64URL.decode(p256dh, isLenient: true), CurvePoint.isValid(key) else {
      throw Self.refused("keys.p256dh: no point of P-256, expected 65 bytes in Base64, the first of them 4")
    }
    guard let secret = Base64URL.decode(auth, isLenient: true), secret.count == 16 else {
      throw Self.refused("keys.auth: expected 16 bytes in Base64")
    }
    guard endpoint.count <= Self.longestEndpoint else {
      throw Self.refused("endpoint: \(endpoint.count) bytes, at most \(Self.longestEndpoint) allowed")
    }
    guard let origin = WebPushOrigin(Self.origin(ofEndpoint: endpoint[...])),
      endpoint.allSatisfy({ 0x21...0x7E ~= $0 && $0 != 0x23 })
    else {
      throw Self.refused("endpoint: not an https address of a push service")
    }
    guard origin.host != "permanently-removed.invalid" else {
      throw Self.refused("endpoint: at permanently-removed.invalid, so the browser has no push service")
    }
    self.endpoint = Self.normal(endpoint)
    publicKey = key
    self.auth = secret
  }

  /// An endpoint as it is stored; the same text if it isn't one.
  public static func normal(_ endpoint: [UInt8]) -> [UInt8] {
    let start = origin(ofEndpoint: endpoint[...])
    return WebPushOrigin(start).map { Array($0.text.utf8) + endpoint[start.endIndex...] } ?? endpoint
  }

  /// Reads a device's token; nil if it has another form.
  public init?(token: some BidirectionalCollection<UInt8>) {
    guard token.count > Self.suffixLength else { return nil }
    let suffix = Array(token.suffix(Self.suffixLength))
    guard suffix[0] == 0 else { return nil }
    endpoint = Array(token.dropLast(Self.suffixLength))
    publicKey = Array(suffix[9..<74])
    auth = Array(suffix[74...])
  }

  /// The browser's object, without `expirationTime`.
  public var json: [UInt8] {
    let keys: JSONObject = ["p256dh": Base64URL.encode(publicKey), "auth": Base64URL.encode(auth)]
    return (["endpoint": endpoint, "keys": keys] as JSONObject).line
  }

  /// The id of a VAPID key, 8 bytes; nil if it is no point of P-256.
  /// - Parameter key: Base64 of the public key, in the form that browsers accept.
  public static func keyID(ofApplicationServerKey key: [UInt8]) -> [UInt8]? {
    Base64URL.decode(key, isLenient: true).flatMap { CurvePoint.isValid($0) ? keyID(ofPoint: $0) : nil }
  }

  /// The id of a VAPID key, 8 bytes: the first of the SHA-256 of its public point.
  public static func keyID(ofPoint point: [UInt8]) -> [UInt8] { Array(Digest.sha256(point).prefix(8)) }

  /// - Parameter keyID: the id of the VAPID key, 8 bytes.
  public func token(keyID: [UInt8] = noKeyID) -> [UInt8] { endpoint + [0] + keyID + publicKey + auth }

  private static func refused(_ reason: String) -> Rejection { Rejection(.invalidRegistration, reason) }

  // MARK: parts of a token

  /// The endpoint in a device's token, or in a text that is only an endpoint.
  public static func endpoint(of token: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard token.count > suffixLength, token[token.endIndex - suffixLength] == 0 else { return token }
    return token.dropLast(suffixLength)
  }

  /// The id of the VAPID key in a device's token, 8 bytes.
  public static func keyID(of token: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    token.count > suffixLength ? token.dropLast(suffixLength - 9).suffix(8) : []
  }

  /// The scheme, host and port of the endpoint in a device's token, as the endpoint spells them.
  public static func origin(of token: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    origin(ofEndpoint: endpoint(of: token))
  }

  /// Empty if the endpoint is no `https` address or has no path. Runs for each push, so ``WebPushOrigin`` has the other checks.
  private static func origin(ofEndpoint endpoint: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard endpoint.starts(with: scheme), let slash = endpoint.dropFirst(scheme.count).firstIndex(of: UInt8(ascii: "/")) else {
      return []
    }
    return endpoint[..<slash]
  }

  private static let scheme = Array("https://".utf8)

  /// The name of a subscription in logs, traces, metrics and reasons: the first 16 hexadecimal digits of its endpoint's SHA-256.
  /// - Parameter token: a device's token or an endpoint.
  public static func name(of token: ArraySlice<UInt8>) -> [UInt8] {
    Digest.sha256(Array(endpoint(of: token))).prefix(8).hexText
  }
}

/// The server of an endpoint.
public struct WebPushOrigin: Hashable, Sendable {
  /// In lower case; an IPv6 address without brackets.
  public let host: String
  public let port: UInt16
  private let isIPv6: Bool

  /// Reads `https://host[:port]`; nil for anything else.
  public init?(_ text: some Collection<UInt8>) {
    let text = String(decoding: text, as: UTF8.self).lowercased()
    guard text.hasPrefix("https://") else { return nil }
    var rest = text.dropFirst(8)
    if rest.hasPrefix("[") {
      guard let end = rest.firstIndex(of: "]") else { return nil }
      let address = rest[rest.index(after: rest.startIndex)..<end]
      guard !address.isEmpty, address.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else { return nil }
      host = String(address)
      isIPv6 = true
      rest = rest[rest.index(after: end)...]
    } else {
      let name = rest.prefix { $0 != ":" }
      guard (1...253).contains(name.utf8.count),
        name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) })
      else { return nil }
      host = String(name)
      isIPv6 = false
      rest = rest.dropFirst(name.count)
    }
    guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
    guard !rest.isEmpty else {
      port = 443
      return
    }
    guard rest.dropFirst().allSatisfy({ $0.isASCII && $0.isNumber }), let port = UInt16(rest.dropFirst()), port > 0 else {
      return nil
    }
    self.port = port
  }

  /// The host, and the port if it isn't 443. For `:authority`, logs and metrics.
  public var authority: String {
    let name = isIPv6 ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }
  /// As VAPID's `aud` names it (RFC 8292 §2).
  public var text: String { "https://\(authority)" }
}
