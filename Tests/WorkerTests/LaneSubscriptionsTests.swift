import AMQP
import Broker
import Testing
import Wire

@testable import Worker

@Suite("Subscriptions of the lanes")
struct LaneSubscriptionsTests {
  let topology = Topology(ladder: [])
  func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 1_000_000_000).advanced(bySeconds: seconds) }

  private func subscriptions(
    prefetch: Int, laneQueues: Int = 1, takesQuarantine: Bool = false, seed: UInt64 = 1
  ) -> LaneSubscriptions {
    var random = RandomSource(seed: seed)
    return LaneSubscriptions(
      prefetch: prefetch, fanOutPrefetch: 3, laneQueues: laneQueues, takesQuarantine: takesQuarantine, random: &random)
  }

  /// The prefetch of a queue.
  private func wanted(_ lanes: LaneSubscriptions, _ name: String, _ topology: Topology = Topology(ladder: [])) -> Int {
    lanes.sources.filter { lanes.isWanted($0) }.map { lanes.subscription($0, topology) }
      .reduce(0) { $1.queue == name ? $0 + Int($1.prefetch) : $0 }
  }

  @Test("prefetch 64 requests of each lane, and the whole prefetch only while as many fit")
  func prefetch() {
    var lanes = subscriptions(prefetch: 1_000)
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
    var lanes = subscriptions(prefetch: 5, takesQuarantine: true)
    var hasChanged: Bool
    hasChanged = lanes.adjust(fitting: 1_000, at: at(0))
    #expect(!hasChanged)
    #expect(wanted(lanes, "push.send.normal") == 5 && wanted(lanes, "push.fanout.normal") == 3)
    #expect(wanted(lanes, "push.quarantine") == 1)
  }

  @Test("read ahead in steps on other channels at once, and stop two seconds after the last need")
  func ahead() {
    var lanes = subscriptions(prefetch: 64)
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
    var lanes = subscriptions(prefetch: 64, takesQuarantine: true)
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

  @Test("of several queues divide the prefetch of the lane, and have a priority at each queue", arguments: [2, 3, 16])
  func divided(_ queues: Int) {
    let topology = Topology(ladder: [], laneQueues: queues)
    for prefetch in [1, 10, 64, 70, 1_000, 10_000] {
      var lanes = subscriptions(prefetch: prefetch, laneQueues: queues, takesQuarantine: true)
      _ = lanes.takeAhead(100_000, at: at(0))
      _ = lanes.adjust(fitting: 10_000, at: at(0))
      let wantedNow = lanes.sources.filter { lanes.isWanted($0) }.map { lanes.subscription($0, topology) }
      // 0 would mean that the broker sends any number.
      #expect(wantedNow.allSatisfy { $0.prefetch > 0 })
      #expect(Set(wantedNow.map(\.queue)).isSubset(of: topology.queues.map(\.name)))
      let names = ["push.send.normal"] + (1..<queues).map { "push.send.normal.\($0)" }
      for name in names {
        let share = max((prefetch / queues > 64 / queues ? prefetch : min(prefetch, 64)) / queues, 1)
        #expect(wanted(lanes, name, topology) == share + 10 * (10_000 / queues), "\(prefetch) \(name)")
        let priorities = wantedNow.filter { $0.queue == name }.map { $0.arguments["x-priority"] }
        #expect(priorities.allSatisfy { $0 != nil && $0 == priorities[0] })
      }
      for name in ["push.fanout.normal", "push.quarantine"] {
        #expect(wantedNow.filter { $0.queue == name }.map(\.arguments) == [FieldTable()])
      }
    }
  }

  @Test("of several queues have other priorities in each shard, and those of one queue none")
  func priorities() {
    let topology = Topology(ladder: [], laneQueues: 4)
    func priorities(_ lanes: LaneSubscriptions) -> [FieldValue?] {
      lanes.sources.map { lanes.subscription($0, topology).arguments["x-priority"] }
    }
    #expect(priorities(subscriptions(prefetch: 64)).allSatisfy { $0 == nil })
    let first = priorities(subscriptions(prefetch: 64, laneQueues: 4))
    #expect(first != priorities(subscriptions(prefetch: 64, laneQueues: 4, seed: 2)))
  }
}
