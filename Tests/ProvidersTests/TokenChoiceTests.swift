import Testing
import Wire

@testable import Providers

@Suite("Which provider token a pool's pushes go out with")
struct TokenChoiceTests {
  private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
  /// The millionth half hour begins.
  private let edge: Int64 = 1_800_000_000_000
  private let own = 1_000_000

  /// Minutes since the half hour began, and how far the clock has been set forward.
  private func look(_ choice: inout TokenChoice, at minutes: Double, set: Double = 0) -> [Int?] {
    choice.look(at: time(minutes), wallClock: wall(minutes + set))
    return [choice.taken, choice.trial].map { $0.map { $0 - own } }
  }

  private func refuse(
    _ choice: inout TokenChoice, _ number: Int, _ refusal: TokenChoice.Refusal, at minutes: Double, isTrusted: Bool = false
  ) -> Bool {
    choice.refused(own + number, refusal, isTrusted: isTrusted, at: time(minutes), wallClock: wall(minutes))
  }

  private func time(_ minutes: Double) -> MonotonicTime { start.advanced(bySeconds: minutes * 60) }
  private func wall(_ minutes: Double) -> Int64 { edge + Int64(minutes * 60_000) }

  private func taken(at minutes: Double = 10) -> TokenChoice {
    var choice = TokenChoice()
    choice.look(at: time(minutes), wallClock: wall(minutes))
    choice.took(ProviderToken.number(at: wall(minutes)))
    return choice
  }

  @Test("The half hour's is tried first, then used by all to its end; then the next is tried while it goes on")
  func course() {
    var choice = TokenChoice()
    #expect(look(&choice, at: 29) == [nil, 0])
    choice.took(own)
    #expect(look(&choice, at: 29.9) == [0, nil])
    #expect(look(&choice, at: 30) == [0, 1])
    #expect(look(&choice, at: 58.9) == [0, 1])
    choice.took(own + 1)
    #expect(look(&choice, at: 59) == [1, nil])
  }

  @Test("One that is an hour old is used no longer, whatever became of the next")
  func old() {
    var choice = taken()
    #expect(look(&choice, at: 59) == [nil, 1])
    #expect(look(&choice, at: 5 * 60) == [nil, 10])
  }

  @Test(
    "Where the next is refused for the number of tokens, the present one goes on for twenty minutes, then it is tried again")
  func tooMany() {
    var choice = taken()
    _ = look(&choice, at: 30)
    #expect(refuse(&choice, 1, .tooMany, at: 30))
    #expect(look(&choice, at: 49.9) == [0, nil])
    #expect(look(&choice, at: 50) == [0, 1])
    #expect(refuse(&choice, 1, .tooMany, at: 50))
    #expect(look(&choice, at: 58.9) == [0, nil])
    #expect(look(&choice, at: 59) == [nil, 1])
  }

  @Test("Where the next one lies in the provider's future, the present one goes on and it is tried again five minutes later")
  func future() {
    var choice = taken()
    _ = look(&choice, at: 30)
    #expect(refuse(&choice, 1, .invalid, at: 30))
    #expect(look(&choice, at: 34.9) == [0, nil])
    #expect(look(&choice, at: 35) == [0, 1])
  }

  @Test("A worker that starts as the half hour does, with a clock that is ahead, goes on with the one before")
  func startsAhead() {
    var choice = TokenChoice()
    _ = look(&choice, at: 1)
    #expect(refuse(&choice, 0, .invalid, at: 1))
    #expect(look(&choice, at: 2) == [nil, -1])
    choice.took(own - 1)
    #expect(look(&choice, at: 5.9) == [-1, nil])
    #expect(look(&choice, at: 6) == [-1, 0])
    choice.took(own)
    #expect(look(&choice, at: 7) == [0, nil])
  }

  @Test("A refused key has one token tried, or two at the beginning of the half hour, and no more")
  func refusedKey() {
    var choice = TokenChoice()
    _ = look(&choice, at: 10)
    #expect(!refuse(&choice, 0, .invalid, at: 10))
    #expect(look(&choice, at: 11) == [nil, 0])
    choice = TokenChoice()
    _ = look(&choice, at: 1)
    #expect(refuse(&choice, 0, .invalid, at: 1) && !refuse(&choice, -1, .invalid, at: 1))
    #expect(look(&choice, at: 2) == [nil, 0])
    choice = taken()
    #expect(!refuse(&choice, 0, .invalid, at: 10))
    #expect(look(&choice, at: 11) == [nil, 0])
  }

  @Test("Too many tokens for a worker that starts: the one before, and when that is refused nothing else")
  func startsWithTooMany() {
    var choice = TokenChoice()
    _ = look(&choice, at: 10)
    #expect(refuse(&choice, 0, .tooMany, at: 10) && look(&choice, at: 10) == [nil, -1])
    #expect(!refuse(&choice, -1, .tooMany, at: 10) && look(&choice, at: 11) == [nil, 0])
    choice = taken()
    #expect(!refuse(&choice, 0, .tooMany, at: 12) && look(&choice, at: 13) == [0, nil])
  }

  @Test("One called expired before its time has its successor tried, once in its half hour, while others that go with it do")
  func expired() {
    var choice = taken()
    #expect(refuse(&choice, 0, .expired, at: 10, isTrusted: true) && look(&choice, at: 10) == [0, 1])
    #expect(refuse(&choice, 1, .expired, at: 10) && look(&choice, at: 11) == [0, nil])
    #expect(!refuse(&choice, 0, .expired, at: 15, isTrusted: true) && look(&choice, at: 15) == [0, nil])
    choice = taken()
    #expect(refuse(&choice, 0, .expired, at: 10) && look(&choice, at: 10) == [nil, 1])
    choice.took(own + 1)
    #expect(look(&choice, at: 14) == [1, nil])
    #expect(look(&choice, at: 15) == [1, 0])
    #expect(refuse(&choice, 0, .expired, at: 15) && look(&choice, at: 16) == [1, nil])
  }

  @Test("One called expired in the next half hour has that one's tried, by one push while others go with it")
  func expiredLate() {
    var choice = taken()
    #expect(refuse(&choice, 0, .expired, at: 30, isTrusted: true) && look(&choice, at: 30) == [0, 1])
    #expect(refuse(&choice, 0, .expired, at: 30, isTrusted: false) && look(&choice, at: 30) == [nil, 1])
  }

  @Test("When the clock is set, its own is tried, and one that was refused under the wrong clock is forgotten")
  func clockSet() {
    var choice = TokenChoice()
    #expect(look(&choice, at: 10, set: -120) == [nil, -4])
    _ = choice.refused(own - 4, .invalid, at: time(10), wallClock: wall(-110))
    #expect(look(&choice, at: 11) == [nil, 0])
    choice = taken(at: 1)
    #expect(look(&choice, at: 2, set: -5) == [0, nil])
    #expect(look(&choice, at: 2, set: -8) == [0, -1])
    #expect(look(&choice, at: 2, set: 100) == [nil, 3])
  }

  @Test("No clock is too wrong", arguments: [Int64.min, -1, 0, Int64.max])
  func absurd(wallClock: Int64) {
    var choice = TokenChoice()
    for refusal in [TokenChoice.Refusal.invalid, .expired, .tooMany] {
      choice.look(at: start, wallClock: wallClock)
      _ = choice.refused(choice.trial ?? 0, refusal, at: start, wallClock: wallClock)
      #expect(choice.trial != nil)
    }
  }

  @Test("A token is made as header, claims and a signature, and nothing else, and issued when its half hour begins")
  func make() {
    let token = ProviderToken.make(ProviderToken.number(at: edge + 1_799_999), keyID: "ABC", teamID: "D\"EF") { input in
      #expect(String(decoding: input, as: UTF8.self).split(separator: ".").count == 2)
      return [0xFB, 0xFF, 0xFE]
    }
    // {"alg":"ES256","kid":"ABC"} and {"iss":"D\"EF","iat":1800000000}
    #expect(
      String(decoding: token.authorization, as: UTF8.self)
        == "bearer eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQyJ9.eyJpc3MiOiJEXCJFRiIsImlhdCI6MTgwMDAwMDAwMH0.-__-")
  }
}
