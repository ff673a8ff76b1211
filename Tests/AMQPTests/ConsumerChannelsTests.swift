import TestSupport
import Testing
import Wire

@testable import AMQP

@Suite("Consumer with several channels")
struct ConsumerChannelsTests {
  final class TwoChannels: Script {
    let recorder = ConsumerRecorder()
    let consumer: Consumer

    init(tune: [UInt8] = Say.tune()) {
      consumer = Consumer(
        settings: Self.settings,
        queues: [.init(queue: "q", prefetch: 10), .init(queue: "q", prefetch: 20, isOptional: true, channel: 2)],
        handler: recorder)
      super.init(consumer)
      say(Say.start() + tune + Say.openOK, ConsumerScript.consuming(1))
      _ = heard()
      recorder.events = []
    }

    /// The second queue's consumption has begun on the channel.
    func wantMore(on channel: UInt16 = 2) {
      consumer.want(true, queue: 1)
      if channel == 2 { say(on(2, Say.channelOpenOK())) }
      say(on(channel, Say.qosOK + Say.consumeOK("1.1")))
    }
  }

  /// Frames for channel 1, as said on another one.
  private static func on(_ channel: UInt16, _ frames: [UInt8]) -> [UInt8] {
    ClientFrame.parse(frames).flatMap { Say.frame($0.type, channel, $0.payload) }
  }
  private func on(_ channel: UInt16, _ frames: [UInt8]) -> [UInt8] { Self.on(channel, frames) }

  @Test("A channel is opened when something of it is first wanted, and its deliveries have tags of their own")
  func ownTags() {
    let script = TwoChannels()
    script.wantMore()
    #expect(script.heard().map(\.description) == ["20.10@2", "60.10@2", "60.20@2"])
    // Two deliveries, frame by frame in turns.
    script.say(Say.deliver(1), on(2, Say.deliver(1, consumer: "1.1")))
    script.say(Say.header(size: 1), on(2, Say.header(size: 3)))
    script.say(on(2, Say.body(bytes("two"))), Say.body(bytes("1")))
    let deliveries = script.recorder.deliveries
    #expect(deliveries.map(\.body) == [bytes("two"), bytes("1")] && deliveries.map(\.consumer) == [1, 0])
    #expect(deliveries.map(\.token.tag) == [1, 1] && deliveries.map(\.token.channel) == [2, 1])
    script.consumer.acknowledge(deliveries[0].token)
    #expect(script.heard().map(\.description) == ["60.80@2"] && script.consumer.unacknowledged == 1)
    script.consumer.reject(deliveries[1].token, requeue: true)
    #expect(script.heard().map(\.description) == ["60.90@1"])
    script.consumer.want(false, queue: 1)
    #expect(script.heard().map(\.description) == ["60.30@2"])
    script.say(on(2, Say.cancelOK("1.1")))
    // The channel stays.
    script.consumer.want(true, queue: 1)
    #expect(script.heard().map(\.description) == ["60.10@2", "60.20@2"])
  }

  @Test("Each channel's acknowledgements wait behind what is in hand there, and for nothing else")
  func ownWindows() {
    let script = TwoChannels()
    script.wantMore()
    _ = script.heard()
    for number in 1...3 as ClosedRange<UInt64> { script.say(Say.message(number), on(2, Say.message(number, consumer: "1.1"))) }
    for token in script.recorder.deliveries.map(\.token) where token.channel == 2 || token.tag > 1 {
      script.consumer.acknowledge(token)
    }
    let first = script.heard()
    #expect(first.map(\.description) == ["60.80@2"] && first[0].tag == 3 && first[0].flag)
    let late = script.wait(ConsumerChannel.longestDelay)
    #expect(late.map(\.description) == ["90.10@1", "60.80@1", "60.80@1", "90.20@1"] && late.acknowledged == [2, 3])
  }

  @Test("While very many are in hand, acknowledgements wait for each other, a moment at most")
  func gathered() {
    let many = ConsumerChannel.manyInHand
    let script = TwoChannels()
    for number in 1...UInt64(many + 1_100) { script.say(Say.message(number)) }
    let tokens = script.recorder.deliveries.map(\.token)
    for token in tokens[..<10] { script.consumer.acknowledge(token) }
    #expect(script.heard().isEmpty)
    let late = script.wait(ConsumerChannel.longestDelay)
    #expect(late.map(\.tag) == [10] && late[0].flag)
    for token in tokens[10..<10 + ConsumerChannel.gatheredLimit] { script.consumer.acknowledge(token) }
    #expect(script.heard().map(\.tag) == [UInt64(10 + ConsumerChannel.gatheredLimit)])
    script.consumer.acknowledge(tokens[10 + ConsumerChannel.gatheredLimit])
    #expect(script.heard().isEmpty)
    script.consumer.close()
    #expect(script.heard().map(\.description).contains("60.80@1"))
    // Of fewer, each goes at once.
    let calm = TwoChannels()
    for number in 1...UInt64(many) { calm.say(Say.message(number)) }
    calm.consumer.acknowledge(calm.recorder.deliveries[0].token)
    #expect(calm.heard().map(\.tag) == [1])
  }

  @Test("Where the broker allows one channel, all is consumed on it")
  func oneAllowed() {
    let script = TwoChannels(tune: Say.tune(channelMax: 1))
    script.wantMore(on: 1)
    #expect(script.heard().map(\.description) == ["60.10@1", "60.20@1"])
    script.say(Say.message(1, consumer: "1.1"))
    #expect(script.recorder.deliveries.count == 1)
  }

  @Test("A channel that the broker closes is reopened where it is the only one; else the connection is renewed")
  func closed() {
    let script = TwoChannels()
    script.say(Say.channelClose(406, "gone"))
    #expect(script.heard().map(\.description).contains("20.10@1") && script.driver.isOpen)
    for channel in [1, 2] as [UInt16] {
      let script = TwoChannels()
      script.wantMore()
      _ = script.heard()
      script.say(Say.channelClose(406, "gone", channel))
      // The other channel's acknowledgements are to arrive.
      let other = 3 - channel
      #expect(script.heard().map(\.description) == ["20.41@\(channel)", "60.30@\(other)", "90.10@\(other)", "90.20@\(other)"])
      script.say(on(other, Say.transactionOK + Say.commitOK))
      #expect(script.heard().map(\.description) == ["10.50@0"])
      #expect(script.recorder.events.allSatisfy { if case .channelLost = $0 { false } else { true } })
    }
  }

  @Test("What comes on a channel that was never opened, or for another channel's consumer, ends the connection")
  func foreign() {
    for said in [on(2, Say.deliver(1)), on(3, Say.channelOpenOK()), on(2, Say.header(size: 0)), Say.channelClose(406, "x", 7)] {
      let script = TwoChannels()
      script.say(said)
      #expect(!script.driver.isOpen)
    }
    let script = TwoChannels()
    script.wantMore()
    script.say(Say.deliver(1, consumer: "1.1"))
    #expect(!script.driver.isOpen)
  }

  @Test("Closed in turn, each channel gives back what it holds before the next one does, and nothing is consumed meanwhile")
  func closedInTurn() {
    let script = TwoChannels()
    script.wantMore()
    script.say(Say.message(1), on(2, Say.message(1, consumer: "1.1")))
    _ = script.heard()
    script.consumer.acknowledge(script.recorder.deliveries[0].token)
    script.consumer.closeInTurn()
    #expect(script.heard().map(\.description) == ["60.30@1", "60.30@2"])
    script.say(Say.cancelOK("0.1"))
    #expect(script.heard().isEmpty)
    // What was on its way is held until its channel closes.
    script.say(on(2, Say.message(2, consumer: "1.1")), on(2, Say.cancelOK("1.1")))
    #expect(script.heard().map(\.description) == ["60.80@1", "90.10@1", "90.20@1"])
    script.say(Say.transactionOK, Say.commitOK)
    #expect(script.heard().map(\.description) == ["20.40@1"])
    script.say(Say.channelCloseOK)
    #expect(script.heard().map(\.description) == ["90.10@2", "90.20@2"])
    script.say(on(2, Say.transactionOK + Say.commitOK))
    #expect(script.heard().map(\.description) == ["20.40@2"])
    script.say(on(2, Say.channelCloseOK))
    #expect(script.heard().map(\.description) == ["10.50@0"])
  }

  @Test("A consumption that is beginning is cancelled when it has begun")
  func closedWhileBeginning() {
    let script = TwoChannels()
    script.consumer.want(true, queue: 1)
    _ = script.heard()
    script.consumer.closeInTurn()
    #expect(script.heard().map(\.description) == ["60.30@1"])
    script.say(on(2, Say.channelOpenOK()), Say.cancelOK("0.1"))
    #expect(script.heard().isEmpty)
    script.say(on(2, Say.qosOK + Say.consumeOK("1.1")))
    #expect(script.heard().map(\.description) == ["60.30@2"])
    script.say(on(2, Say.cancelOK("1.1")))
    #expect(script.heard().map(\.description) == ["90.10@1", "90.20@1"])
  }

  @Test("Closed in turn, it leaves a broker that gives no further answer within the time of a close", arguments: 0...3)
  func closedInTurnUnanswered(_ answers: Int) {
    let script = TwoChannels()
    script.consumer.closeInTurn()
    let answer = [Say.cancelOK("0.1"), Say.transactionOK + Say.commitOK, Say.channelCloseOK]
    for number in 0..<answers {
      script.wait(4)
      script.say(answer[number])
      #expect(script.recorder.events.isEmpty)
    }
    script.wait(4)
    #expect(script.recorder.events.isEmpty && script.driver.isOpen)
    script.wait(1.1)
    #expect(script.recorder.events == [.ended(answers == 3 ? .closedHere : .heartbeatMissed)])
  }
}
