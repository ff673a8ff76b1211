/// The provider tokens of each key, on whichever connection they come: Apple wants one in 20 minutes, and servers to share it.
struct KeyTokens {
  private struct Key: Hashable {
    let keyID: [UInt8]
    let issuer: [UInt8]
  }

  private var latest: [Key: (text: [UInt8], issuedAt: Int64)] = [:]
  /// Keys that are distinguished; a client may name any number of them.
  private static let most = 100_000

  /// A connection's first use of a token.
  /// - Returns: what is wrong with it.
  mutating func note(_ authorization: JournalEntry.Authorization, _ text: [UInt8]) -> String? {
    let key = Key(keyID: authorization.keyID, issuer: authorization.issuer)
    if latest[key] == nil, latest.count >= Self.most { latest.removeAll() }
    let former = latest.updateValue((text, authorization.issuedAt), forKey: key)
    guard let former, former.text != text, abs(former.issuedAt - authorization.issuedAt) < 20 * 60 else { return nil }
    return "the key has had another provider token within 20 minutes"
  }
}
