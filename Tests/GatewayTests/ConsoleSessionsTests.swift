import DeviceRegistry
import Testing
import Wire

@testable import Gateway

@Suite("Sessions of the console")
struct ConsoleSessionsTests {
  private let sessions = ConsoleSessions()
  private let start = MonotonicTime(nanoseconds: 0)

  private func key(_ number: Int) -> GatewayKey {
    GatewayKey(id: Array("k\(number)".utf8), hash: [UInt8(truncatingIfNeeded: number)], apps: [], rights: [.view], createdAt: 0)
  }

  @Test("end after eight hours or when they are closed; no other text finds one")
  func end() {
    let secret = sessions.open(key(1), at: start)
    let other = sessions.open(key(2), at: start)
    #expect(secret != other)
    #expect(sessions.find(secret, at: start.advanced(bySeconds: 28_799))?.keyID == key(1).id)
    #expect(sessions.find(secret + [0x41], at: start) == nil && sessions.find([], at: start) == nil)
    sessions.close(other)
    #expect(sessions.find(other, at: start) == nil)
    #expect(sessions.find(secret, at: start.advanced(bySeconds: 28_800)) == nil)
  }

  @Test("are bounded: another one ends the oldest")
  func bound() {
    let secrets = (0...1_000).map { sessions.open(key($0), at: start.advanced(bySeconds: Double($0))) }
    let now = start.advanced(bySeconds: 1_001)
    #expect(sessions.find(secrets[0], at: now) == nil)
    #expect(secrets.dropFirst().allSatisfy { sessions.find($0, at: now) != nil })
  }

  @Test("are bounded for each key: many logins with one key end no session of another key")
  func boundOfKey() {
    let other = sessions.open(key(2), at: start)
    let secrets = (1...1_000).map { sessions.open(key(1), at: start.advanced(bySeconds: Double($0))) }
    let now = start.advanced(bySeconds: 1_001)
    #expect(sessions.find(other, at: now) != nil)
    #expect(secrets.map { sessions.find($0, at: now) != nil } == (1...1_000).map { $0 > 980 })
  }
}
