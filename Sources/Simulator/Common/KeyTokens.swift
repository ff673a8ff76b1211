/// The tokens of each key on all connections. Apple wants servers to share one token and to renew it no more often than it says.
struct KeyTokens {
  /// The least time between two tokens.
  let minutes: Int64

  /// By key id and issuer.
  private var latest: [[[UInt8]]: (text: [UInt8], issuedAt: Int64)] = [:]
  /// Most keys that are remembered; a client may name any number of them.
  private static let most = 100_000

  init(minutes: Int64) { self.minutes = minutes }

  /// Notes a connection's first use of a token.
  /// - Returns: the violation, if there is one.
  mutating func note(_ authorization: JournalEntry.Authorization, _ text: [UInt8]) -> String? {
    let key = [authorization.keyID, authorization.issuer]
    if latest[key] == nil, latest.count >= Self.most { latest.removeAll() }
    let former = latest.updateValue((text, authorization.issuedAt), forKey: key)
    guard let former, former.text != text, abs(former.issuedAt - authorization.issuedAt) < minutes * 60 else { return nil }
    return "the key has had another token within \(minutes) minutes"
  }
}
