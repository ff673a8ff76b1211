import AMQP
import PushCore
import Wire
import Testing

@testable import Delivery

/// The end of a request's life, in Unix milliseconds.
@Suite("A request's deadline")
struct DeadlineTests {
  private func deadline(_ lifetime: Int?, _ expiration: String?, published: Int64 = 10_000, seen: Int64 = 10_900) -> Int64 {
    var properties = BasicProperties()
    properties.expiration = expiration.map { Array($0.utf8) }
    return Intake.deadline(lifetime, properties, from: published, seen: seen)
  }

  @Test("time_to_live counts from publishing, and expiration from when a worker first saw the request")
  func starts() {
    #expect(deadline(60, nil) == 70_000)
    // The timestamp has whole seconds, so the request may be younger than it says.
    #expect(deadline(nil, "500") == 11_400)
    #expect(deadline(nil, "30000", published: -50_000) == 40_900)
  }

  @Test("the earlier end applies; a request for now or never ignores expiration")
  func earlier() {
    #expect(deadline(60, "500") == 11_400)
    #expect(deadline(1, "5000") == 11_000)
    #expect(deadline(0, "500") == 20_000)
    #expect(deadline(nil, "9223372036854775807") == 2_419_210_000)
    #expect(deadline(nil, "soon") == 2_419_210_000)
  }

  @Test(
    "an apns-expiration that has passed ends the request; 0 is one attempt",
    arguments: [(0, true, 10_000), (400, false, -100_000)])
  func apnsExpiration(seconds: Int, isLast: Bool, deadline: Int64) throws {
    let apps = Applications()
    apps.put(Array("a".utf8), packages: [], senders: [])
    let intake = Intake(apps: apps, limits: RequestLimits())
    let entry = InFlight(index: 0)
    var delivery = Delivery()
    let token = String(repeating: "a", count: 64)
    delivery.body = Array(
      #"{"to":"\#(token)","notification":{"title":"t"},"apns":{"headers":{"apns-expiration":"\#(seconds)"}}}"#.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    delivery.properties.timestamp = 500
    var random = RandomSource(seed: 1)
    intake.identify(entry, delivery, using: &random)
    #expect(intake.admit(entry, delivery, nil, at: 510_000) == nil)
    #expect(entry.attempt.isLast == isLast && entry.identity.deadline == 500_000 + deadline)
  }
}
