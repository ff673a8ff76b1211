import Broker
import Testing
import Wire

@testable import Worker

@Suite("Subscriptions of the lanes")
struct LaneSubscriptionsTests {
  let topology = Topology(ladder: [])
  func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 1_000_000_000).advanced(bySeconds: seconds) }

  /// The prefetch of a queue.
  private func wanted(_ lanes: LaneSubscriptions, _ name: String) -> Int {
    lanes.sources.filter { lanes.isWanted($0) }.map { lanes.subscription($0, topology) }
      .reduce(0) { $1.queue == name ? $0 + Int($1.prefetch) : $0 }
  }

  @Test("prefetch 64 requests of each lane, and the whole prefetch only while as many fit")
  func prefetch() {
    var lanes = LaneSubscriptions(prefetch: 1_000, fanOutPrefetch: 3, takesQuarantine: false)
    var hasChanged: Bool
    #expect(wanted(lanes, "push.send.normal") == 64 && wanted(lanes, "push.send.high") == 64)
    hasChanged = lanes.adjust(fitting: 999, at: at(0))
    #expect(!hasChanged)
    hasChanged = lanes.adjust(fitting: 1_000, at: at(0))
    #expect(hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 1_000)
    hasChanged = lanes.adjust(fitting: 250, at: at(1))
    #expect(!hasChanged)
    hasChanged = lanes.adjust(fitting: 249, at: at(1))
    #expect(hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 64)
    // They come back after a while at the earliest.
    hasChanged = lanes.adjust(fitting: 1_000, at: at(10.9))
    #expect(!hasChanged)
    hasChanged = lanes.adjust(fitting: 1_000, at: at(11))
    #expect(hasChanged)
  }

  @Test("have one channel for each lane if the prefetch is no larger than that")
  func small() {
    var lanes = LaneSubscriptions(prefetch: 5, fanOutPrefetch: 3, takesQuarantine: true)
    var hasChanged: Bool
    hasChanged = lanes.adjust(fitting: 1_000, at: at(0))
    #expect(!hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 5 && wanted(lanes, "push.fanout.normal") == 3)
    #expect(wanted(lanes, "push.quarantine") == 1)
  }

  @Test("read ahead in steps on other channels at once, and stop two seconds after the last need")
  func ahead() {
    var lanes = LaneSubscriptions(prefetch: 64, fanOutPrefetch: 3, takesQuarantine: false)
    var hasChanged: Bool
    hasChanged = lanes.takeAhead(9_999, at: at(0))
    #expect(!hasChanged)
    hasChanged = lanes.takeAhead(10_000, at: at(0))
    #expect(hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 10_064 && wanted(lanes, "push.send.high") == 10_064)
    hasChanged = lanes.takeAhead(100_000, at: at(1))
    #expect(hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 100_064 && wanted(lanes, "push.send.high") == 10_064)
    let channels = lanes.sources.map { lanes.subscription($0, topology) }.filter { $0.prefetch == 10_000 }.map(\.channel)
    #expect(channels == [2] + Array(2...11))
    hasChanged = lanes.takeAhead(0, at: at(2.9))
    #expect(!hasChanged)
    hasChanged = lanes.takeAhead(0, at: at(3))
    #expect(hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 64)
  }

  @Test("stop while every provider is in trouble; the quarantine goes on")
  func stopped() {
    var lanes = LaneSubscriptions(prefetch: 64, fanOutPrefetch: 3, takesQuarantine: true)
    var hasChanged: Bool
    hasChanged = lanes.takeLanes(true)
    #expect(!hasChanged)
    hasChanged = lanes.takeLanes(false)
    #expect(hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 0 && wanted(lanes, "push.quarantine") == 1)
    hasChanged = lanes.takeLanes(true)
    #expect(hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 64)
  }
}
