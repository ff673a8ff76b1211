import PushCore
import Testing

@testable import Simulation

@Suite("Trouble of single applications")
struct AppTroublesTests {
  private let troubles = AppTroubles(all: [
    AppTrouble(kind: .appSilent, apps: [1], platforms: [.apns], from: 100, to: 110, recovery: 2)
  ])

  @Test("is felt by those that have it, from its begin until a while after its end")
  func felt() {
    #expect(!troubles.areFelt(by: 1, at: 94, for: 5) && troubles.areFelt(by: 1, at: 95, for: 5))
    #expect(troubles.areFelt(by: 1, at: 200, for: 5) && !troubles.areFelt(by: 1, at: 230, for: 5))
    #expect(!troubles.areFelt(by: 0, at: 105, for: 5) && troubles.areFelt(at: 105, for: 5))
  }

  @Test("is over at its end for what is held")
  func over() {
    #expect(troubles.hasTrouble(1, after: 99, for: 2) && !troubles.hasTrouble(1, after: 110, for: 60))
    #expect(!troubles.hasTrouble(0, after: 105, for: 2))
    #expect(troubles.recovery(of: 1, at: 111) == 1 && troubles.recovery(of: 0, at: 111) == 0)
  }

  @Test("is measured by the longest that anybody waited")
  func delays() {
    var (all, one) = (Delays(), Delays())
    one.noteBeside(0.5)
    one.note(after: .appSlow, 3)
    all.merge(one)
    one.note(after: .appSlow, 2)
    all.merge(one)
    #expect(all.beside == 0.5 && all.after == [.appSlow: 3])
  }
}
