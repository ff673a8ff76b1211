import PushCore
import Testing

@testable import Simulation

@Suite("A simulated push service")
struct PushServiceTests {
  @Test("makes subscriptions that are the same as targets, as tokens and as endpoints", arguments: PushService.allCases)
  func subscriptions(_ service: PushService) {
    let token = Workload.token(.webpush, app: 3, number: 1_007, at: [service])
    #expect(token == service.endpoint("301007") && PushService(endpoint: token) == service)
    #expect(Workload.platform(of: token) == .webpush && Workload.app(of: token) == 3 && Workload.isRegistered(token))
    #expect(PushService.endpoint(ofTarget: PushService.target(token)) == token)
    #expect(Workload.reference(token) == token)
  }

  @Test("has no devices of other platforms")
  func others() {
    let (phone, other) = (Workload.token(.apns, app: 1, number: 2, at: []), Workload.token(.fcm, app: 1, number: 2, at: []))
    #expect(PushService(endpoint: phone) == nil && PushService(endpoint: other) == nil)
    #expect(Workload.target(phone) == "apns:\(phone)" && Workload.target(other) == "fcm:\(other)")
    #expect(PushService.endpoint(ofTarget: Workload.target(phone)) == nil)
  }
}
