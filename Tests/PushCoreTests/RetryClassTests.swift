import Testing

@testable import PushCore

@Suite struct RetryClassTests {
  @Test(
    "each class waits its base, then twice as long each time, up to its cap",
    arguments: [
      (.perDevice, [10_000, 20_000, 40_000], 3_600_000), (.outage, [900_000, 1_800_000, 3_600_000], 3_600_000),
      (.connection, [1000, 2000, 4000], 60_000), (.fcm, [10_000, 20_000, 40_000], 3_600_000),
      (.quota, [60_000, 120_000, 240_000], 3_600_000), (.refreshedToken, [0, 60_000, 120_000], 3_600_000),
    ] as [(RetryClass, [Int64], Int64)])
  func ladder(retry: RetryClass, first: [Int64], cap: Int64) {
    #expect((1...3).map { retry.delay(afterAttempt: $0) } == first)
    #expect(retry.delay(afterAttempt: 40) == cap)
    #expect(retry.delay(afterAttempt: .max) == cap)
    #expect(retry.delay(afterAttempt: 0) == first[0])
    #expect(retry.delay(afterAttempt: .min) == first[0])
  }

  @Test("a delay never shrinks from one attempt to the next", arguments: RetryClass.allCases)
  func monotonic(retry: RetryClass) {
    for attempt in 1..<64 { #expect(retry.delay(afterAttempt: attempt + 1) >= retry.delay(afterAttempt: attempt)) }
  }

  @Test("Retry-After replaces the class's delay, but FCM is never asked again within ten seconds")
  func retryAfter() {
    #expect(RetryClass.outage.delay(afterAttempt: 1, retryAfter: 30) == 30_000)
    #expect(RetryClass.outage.delay(afterAttempt: 5, retryAfter: 30) == 30_000)
    #expect(RetryClass.quota.delay(afterAttempt: 1, retryAfter: 120) == 120_000)
    #expect(RetryClass.fcm.delay(afterAttempt: 1, retryAfter: 2) == 10_000)
    #expect(RetryClass.perDevice.delay(afterAttempt: 1, retryAfter: 1) == 1000)
  }

  @Test("only a provider's own trouble delays all pushes")
  func scopes() {
    #expect(RetryClass.perDevice.scope == .device)
    #expect(RetryClass.connection.scope == .connection)
    #expect(RetryClass.outage.scope == .provider)
  }
}
