import Testing
import Wire

@testable import Providers

@Suite("The lifetime of a provider token")
struct TokenLifetimeTests {
  let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
  let wall: Int64 = 1_800_000_000_000

  private func minted(refreshAge: Double = 50 * 60) -> TokenLifetime {
    var lifetime = TokenLifetime(refreshAge: refreshAge)
    lifetime.minted(ProviderToken(authorization: [], generation: 1, mintedAt: start, issuedAt: wall / 1000))
    return lifetime
  }

  private func isDue(_ lifetime: TokenLifetime, minutes: Double, jump: Double = 0) -> Bool {
    lifetime.isDue(
      at: start.advanced(bySeconds: minutes * 60), wallClock: wall + Int64((minutes + jump) * 60_000))
  }

  @Test("is fifty minutes unless set, and never outside of twenty to sixty")
  func ages() {
    #expect(!isDue(minted(), minutes: 49.9))
    #expect(isDue(minted(), minutes: 50))
    #expect(!isDue(minted(refreshAge: 1), minutes: 19.9))
    #expect(isDue(minted(refreshAge: 1), minutes: 20))
    #expect(!isDue(minted(refreshAge: 1e9), minutes: 59.9))
    #expect(isDue(minted(refreshAge: 1e9), minutes: 60))
  }

  @Test(
    "ends early when the wall clock has jumped, but not within twenty minutes",
    arguments: [120.0, -120, -900_000, 6_000_000])
  func jumps(jump: Double) {
    #expect(!isDue(minted(), minutes: 19, jump: jump))
    #expect(isDue(minted(), minutes: 20, jump: jump))
    #expect(!isDue(minted(), minutes: 20, jump: 4))
  }

  @Test("an expired one may be replaced once before its time, then not for twenty minutes")
  func expired() {
    var lifetime = minted()
    let first = lifetime.mayReplaceExpired(at: start.advanced(bySeconds: 10))
    #expect(first)
    lifetime.minted(
      ProviderToken(authorization: [], generation: 2, mintedAt: start.advanced(bySeconds: 10), issuedAt: wall / 1000 + 10))
    let later = [20.0, 1200, 1210].map { lifetime.mayReplaceExpired(at: start.advanced(bySeconds: $0)) }
    #expect(later == [false, false, true])
  }

  @Test("rests for twenty minutes after too many updates, but not beyond an hour of age")
  func rests() {
    var lifetime = minted()
    lifetime.rest(at: start.advanced(bySeconds: 45 * 60))
    #expect(!isDue(lifetime, minutes: 59))
    #expect(isDue(lifetime, minutes: 60))
    let mayReplace = lifetime.mayReplaceExpired(at: start.advanced(bySeconds: 50 * 60))
    #expect(!mayReplace)
  }

  @Test("is minted as header, claims and a signature, and nothing else")
  func mint() {
    let token = ProviderToken.mint(
      keyID: "ABC", teamID: "D\"EF", generation: 1, at: start, wallClock: 1_800_000_000_999
    ) { input in
      #expect(String(decoding: input, as: UTF8.self).split(separator: ".").count == 2)
      return [0xFB, 0xFF, 0xFE]
    }
    // {"alg":"ES256","kid":"ABC"} and {"iss":"D\"EF","iat":1800000000}
    #expect(
      String(decoding: token.authorization, as: UTF8.self)
        == "bearer eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQyJ9.eyJpc3MiOiJEXCJFRiIsImlhdCI6MTgwMDAwMDAwMH0.-__-")
  }
}
