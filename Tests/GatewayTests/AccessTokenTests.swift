import DeviceRegistry
import Testing

@testable import Gateway

@Suite("Tokens of the token endpoint")
struct AccessTokenTests {
  private func key(_ id: String, hash: UInt8, isAccount: Bool = true) -> GatewayKey {
    var key = GatewayKey(id: Array(id.utf8), hash: [UInt8](repeating: hash, count: 32), apps: [], rights: [], createdAt: 0)
    if isAccount { key.account = GatewayAccount(publicKey: [], tokenURI: []) }
    return key
  }

  @Test("are valid for an hour, for their key alone, and no token is valid as a plain text")
  func judged() throws {
    let own = key("AAAAAAAAAAAA", hash: 1)
    let token = try #require(AccessToken(AccessToken(for: own, at: 1_000).text))
    #expect(token.keyID == own.id)
    #expect(token.isGood(for: own, at: 1_000) && token.isGood(for: own, at: 4_599) && !token.isGood(for: own, at: 4_600))
    #expect(!token.isGood(for: key("AAAAAAAAAAAA", hash: 2), at: 1_000))
    #expect(!token.isGood(for: key("AAAAAAAAAAAA", hash: 1, isAccount: false), at: 1_000))
    for text in [
      "", "pf1t~", "pf1t~AAAAAAAAAAAA~5", "pf1t~AAAAAAAAAAA~5~x", "pf1t~AAAAAAAAAAAA~99999999999999999999~x", "pf1k~a~5~x",
    ] {
      #expect(AccessToken(Array(text.utf8)) == nil, "\(text)")
    }
  }
}
