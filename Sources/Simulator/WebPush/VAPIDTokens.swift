/// The VAPID keys and tokens of all connections.
struct VAPIDTokens {
  /// The key of all subscriptions; nil if each is bound by its first push.
  private let onlyKey: [UInt8]?
  /// The keys of subscriptions by their paths.
  private var bindings: [[UInt8]: [UInt8]] = [:]
  /// Headers with a valid signature. Senders use a token many times.
  private var verified: Set<[UInt8]> = []
  private var renewals = KeyTokens(minutes: 60)
  /// Most bindings and most headers that are remembered; a client may make up any number of them.
  private static let (mostBindings, mostVerified) = (1_000_000, 10_000)

  init(onlyKey: [UInt8]?) { self.onlyKey = onlyKey }

  /// Checks the signature.
  /// - Returns: the public point.
  mutating func verify(_ token: VAPIDToken) throws(WebPushRefusal) -> [UInt8] {
    guard let point = token.publicPoint else { throw .badKey }
    if verified.contains(token.header) { return point }
    guard let isSigned = try? token.isSigned(by: point) else { throw .badKey }
    guard isSigned else { throw .badToken("the signature is not the key's") }
    if verified.count >= Self.mostVerified { verified.removeAll() }
    verified.insert(token.header)
    return point
  }

  /// Binds a subscription to its first key.
  /// - Returns: false if the subscription is bound to another key.
  mutating func bind(_ path: [UInt8], to point: [UInt8]) -> Bool {
    if let key = onlyKey ?? bindings[path] { return key == point }
    if bindings.count >= Self.mostBindings { bindings.removeAll() }
    bindings[path] = point
    return true
  }

  /// Notes a use of a token.
  /// - Returns: the violation, if there is one.
  mutating func noteUse(_ token: VAPIDToken) -> String? {
    let claims = token.claims
    let use = JournalEntry.Authorization(keyID: claims.key, issuer: claims.audience ?? [], issuedAt: claims.expires ?? 0)
    return renewals.note(use, token.header)
  }
}
