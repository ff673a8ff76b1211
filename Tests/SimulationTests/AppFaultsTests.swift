import PushCore
import Testing

@testable import Simulation

@Suite("Faults of single applications")
struct AppFaultsTests {
  private let faults = AppFaults(all: [
    AppFault(kind: .appSilent, apps: [1], platforms: [.apns], from: 100, to: 110, recovery: 2)
  ])

  @Test("is felt by those that have it, from its begin until a while after its end")
  func felt() {
    #expect(!faults.areFelt(by: 1, at: 94, for: 5) && faults.areFelt(by: 1, at: 95, for: 5))
    #expect(faults.areFelt(by: 1, at: 200, for: 5) && !faults.areFelt(by: 1, at: 230, for: 5))
    #expect(!faults.areFelt(by: 0, at: 105, for: 5) && faults.areFelt(at: 105, for: 5))
  }

  @Test("of a push service is felt by its own devices alone")
  func service() {
    var faults = AppFaults()
    faults.all = [AppFault(kind: .appSilent, apps: [], platforms: [.webpush], from: 100, to: 110, recovery: 0, service: .apple)]
    let (apple, google) = (PushService.apple.endpoint("7"), PushService.google.endpoint("7"))
    #expect(faults.areFelt(by: apple, at: 105, for: 5) && !faults.areFelt(by: apple, at: 94, for: 5))
    #expect(!faults.areFelt(by: google, at: 105, for: 5) && !faults.areFelt(by: "device-7", at: 105, for: 5))
    #expect(faults.areFelt(at: 105, for: 5) && !faults.areFelt(by: 0, at: 105, for: 5))
  }

  @Test("is over at its end for what is held")
  func over() {
    #expect(faults.hasFault(1, after: 99, for: 2) && !faults.hasFault(1, after: 110, for: 60))
    #expect(!faults.hasFault(0, after: 105, for: 2))
    #expect(faults.recovery(of: 1, at: 111) == 1 && faults.recovery(of: 0, at: 111) == 0)
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
