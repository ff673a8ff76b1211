import Foundation
import Logging
import MachineDriver
import Reactor
import TestSupport
import Testing
import Wire

@testable import AMQP
@testable import Broker

@Suite("The outbox")
struct OutboxTests {
  /// A connection that is ready to publish. The test plays the broker.
  final class Connection: PublisherHandler {
    let outbox: Outbox
    private(set) var publisher: Publisher!
    let driver: MachineDriver
    let now = MonotonicTime(nanoseconds: 1_000_000_000)
    private(set) var hasEnded = false

    init(_ outbox: Outbox) {
      self.outbox = outbox
      let machine = Box()
      driver = MachineDriver(machine.publisher)
      publisher = machine.publisher
      machine.handler.target = self
      handler = machine.handler
      driver.open(at: now)
      let start = method(0, 10, 10, [0, 9, 0, 0, 0, 0, 0, 0, 0, 5] + Array("PLAIN".utf8) + [0, 0, 0, 5] + Array("en_US".utf8))
      let tune = method(0, 10, 30, [0, 10, 0, 2, 0, 0, 0, 0])
      driver.receive(start + tune + method(0, 10, 41, [0]), at: now)
      driver.receive(method(1, 20, 11, [0, 0, 0, 0]) + method(1, 85, 11), at: now)
      driver.settle(at: now)
    }

    /// A publisher doesn't keep its handler, and needs one from the start.
    private final class Box {
      let handler = Forwarder()
      let publisher: Publisher
      init() {
        publisher = Publisher(
          settings: ConnectionSettings(broker: BrokerURI(host: "h", user: "u", password: "p")), window: Outbox.window,
          handler: handler)
      }
    }
    private final class Forwarder: PublisherHandler {
      weak var target: Connection?
      func ready(_ publisher: Publisher) { target?.ready(publisher) }
      func confirmed(_ tag: Int) { target?.confirmed(tag) }
      func failed(_ tag: Int, _ failure: PublishFailure) { target?.failed(tag, failure) }
      func ended(_ publisher: Publisher, _ reason: ConnectionEnd) { target?.ended(publisher, reason) }
    }
    private var handler: Forwarder?

    func ready(_ publisher: Publisher) { outbox.use(publisher) }
    func confirmed(_ tag: Int) { outbox.confirmed(tag) }
    func failed(_ tag: Int, _ failure: PublishFailure) { _ = outbox.failed(tag, failure) }
    func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
      hasEnded = true
      outbox.use(nil)
    }

    /// The number of messages given to it.
    var published: Int { publisher.unconfirmed }

    func settle(_ sequence: UInt16, isAck: Bool = true) {
      let number = [UInt8(sequence >> 8), UInt8(sequence & 0xFF)]
      driver.receive(method(1, 60, isAck ? 80 : 120, [0, 0, 0, 0, 0, 0] + number + [0]), at: now)
      driver.settle(at: now)
    }

    /// The broker has no queue for a message of ``message(_:_:)``: all such messages are returned, then confirmed up to
    /// `sequence`.
    func giveBack(upTo sequence: UInt16) {
      let exchange = Array("push.events".utf8)
      var frames = method(1, 60, 50, [1, 56, 0, UInt8(exchange.count)] + exchange + [1, 97])
      frames += [2, 0, 1, 0, 0, 0, 14, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xCE]
      frames += [3, 0, 1, 0, 0, 0, 1, 1, 0xCE]
      frames += method(1, 60, 80, [0, 0, 0, 0, 0, 0, UInt8(sequence >> 8), UInt8(sequence & 0xFF), 1])
      driver.receive(frames, at: now)
      driver.settle(at: now)
    }

    func cut() { driver.finish(.failed("reset"), at: now) }

    /// The broker ends the connection with an internal error.
    func crash(_ text: String = "INTERNAL_ERROR") {
      let text = Array(text.utf8)
      let arguments = [0x02, 0x1D, UInt8(text.count)] + text + [0, 0, 0, 0]
      driver.receive(method(0, 10, 50, arguments), at: now)
      driver.settle(at: now)
      driver.finish(.failed("closed"), at: now)
    }

    private func method(_ channel: UInt8, _ classID: UInt8, _ number: UInt8, _ arguments: [UInt8] = []) -> [UInt8] {
      [1, 0, channel, 0, 0, 0, UInt8(4 + arguments.count), 0, classID, 0, number] + arguments + [0xCE]
    }
  }

  final class Owner: OutboxOwner {
    var confirmed: [Int] = []
    var unreached = 0
    func replyReachedNobody() { unreached += 1 }
    func body(of publication: Publication) -> [UInt8] { publication.body }
    func publicationConfirmed(_ publication: Publication) { confirmed.append(OutboxTests.number(publication)) }
    func outboxDrained() {}
  }

  private func make() throws -> (EventLoop, Outbox, Owner) {
    let loop = try EventLoop()
    let (outbox, owner) = make(loop.time)
    return (loop, outbox, owner)
  }

  /// ``advance(_:bySeconds:)`` moves its time.
  private func makeInOwnTime() -> (Turn, Outbox, Owner) {
    let time = Turn(now: MonotonicTime(nanoseconds: 1_000_000_000), wallClock: 0)
    let (outbox, owner) = make(time)
    return (time, outbox, owner)
  }

  private func make(_ time: Turn) -> (Outbox, Owner) {
    let outbox = Outbox(time: time, log: Log(level: .error))
    let owner = Owner()
    outbox.owner = owner
    return (outbox, owner)
  }

  fileprivate static func number(_ publication: Publication) -> Int {
    if case .request(let index) = publication.owner { index } else { -1 }
  }

  private func message(_ owner: Int, _ kind: Publication.Kind = .feedback) -> Publication {
    Publication(
      kind: kind, exchange: Array("push.events".utf8), routingKey: [97], properties: BasicProperties(), body: [1],
      owner: .request(owner))
  }

  @Test("publishes unconfirmed messages again on the next connection; each is reported once")
  func retransmission() throws {
    let (_, outbox, owner) = try make()
    for number in 0..<5 { outbox.publish(message(number)) }
    let first = Connection(outbox)
    #expect(first.published == 5)
    first.settle(2)
    first.settle(4)
    first.cut()
    #expect(first.hasEnded && owner.confirmed == [1, 3] && outbox.backlog == 3)
    let second = Connection(outbox)
    #expect(second.published == 3)
    for sequence in 1...3 as ClosedRange<UInt16> { second.settle(sequence) }
    #expect(owner.confirmed.sorted() == [0, 1, 2, 3, 4] && outbox.backlog == 0)
    second.cut()
    #expect(Connection(outbox).published == 0)
  }

  @Test("withdraws unsent messages only")
  func withdrawal() throws {
    let (_, outbox, owner) = try make()
    outbox.publish(message(0, .retry))
    let connection = Connection(outbox)
    connection.cut()
    outbox.publish(message(1, .retry))
    outbox.publish(message(2))
    outbox.publish(message(3, .retry))
    #expect(outbox.withdraw(.retry) { $0 != 3 }.map(Self.number) == [1] && outbox.backlog == 3)
    let next = Connection(outbox)
    #expect(next.published == 3)
    #expect(outbox.withdraw(.retry) { _ in true }.isEmpty)
    for sequence in 1...3 as ClosedRange<UInt16> { next.settle(sequence) }
    #expect(owner.confirmed.sorted() == [0, 2, 3] && outbox.backlog == 0)
  }

  @Test(
    "opens another connection when it is refused for long, after sent messages are settled, and offers everything again there; refused replies don't count"
  )
  func renewal() throws {
    let (loop, outbox, owner) = try make()
    outbox.reconnectPolicy.pause = Backoff(base: 0, cap: 0)
    var renewals = 0
    outbox.renewConnection = { renewals += 1 }
    let connection = Connection(outbox)
    outbox.publish(message(0, .reply))
    connection.settle(1, isAck: false)
    for number in 1...3 { outbox.publish(message(number)) }
    connection.settle(2, isAck: false)
    connection.settle(3, isAck: false)
    // One is still under way.
    loop.turn(waitingAtMost: 0)
    #expect(renewals == 0)
    outbox.publish(message(4))
    connection.settle(4)
    loop.turn(waitingAtMost: 0)
    loop.turn(waitingAtMost: 0)
    #expect(renewals == 1 && owner.confirmed == [3])
    connection.cut()
    let next = Connection(outbox)
    #expect(next.published == 4)
    loop.turn(waitingAtMost: 0)
    #expect(renewals == 1)
  }

  @Test("continues with waiting messages when all sent ones are returned or given up")
  func returned() throws {
    let (_, outbox, owner) = try make()
    let connection = Connection(outbox)
    for number in 0..<1_500 { outbox.publish(message(number, .reply)) }
    #expect(connection.published == 1_000)
    connection.giveBack(upTo: 1_000)
    #expect(connection.published == 500 && owner.unreached == 1_000 && outbox.backlog == 500)
    connection.giveBack(upTo: 1_500)
    #expect(connection.published == 0 && owner.unreached == 1_500 && outbox.backlog == 0)

    for number in 0..<1_500 { outbox.publish(hopeless(number)) }
    #expect(connection.published == 1_000)
    for sequence in 1_501...2_500 { connection.settle(UInt16(sequence), isAck: false) }
    #expect(connection.published == 500 && owner.unreached == 2_500)
  }

  /// A reply whose queue was full at every attempt.
  private func hopeless(_ owner: Int) -> Publication {
    let reply = message(owner, .reply)
    reply.refusals = 4
    return reply
  }

  @Test("opens another connection after replies given up to full queues too")
  func renewalForReplies() throws {
    let (loop, outbox, owner) = try make()
    outbox.replyReconnectPolicy.pause = Backoff(base: 0, cap: 0)
    var renewals = 0
    outbox.renewConnection = { renewals += 1 }
    let connection = Connection(outbox)
    for number in 0..<2 { outbox.publish(hopeless(number)) }
    connection.settle(1, isAck: false)
    connection.settle(2, isAck: false)
    loop.turn(waitingAtMost: 0)
    loop.turn(waitingAtMost: 0)
    #expect(renewals == 1 && owner.unreached == 2 && outbox.backlog == 0)
  }

  @Test("gives confirms their whole time before it opens another connection, also soon after it has opened one")
  func renewedTwice() {
    let (time, outbox, _) = makeInOwnTime()
    outbox.replyReconnectPolicy.pause = Backoff(base: 0, cap: 0)
    outbox.reconnectPolicy.pause = Backoff(base: 0, cap: 0)
    var renewals = 0
    outbox.renewConnection = { renewals += 1 }
    let connection = Connection(outbox)
    for number in 0..<2 { outbox.publish(hopeless(number)) }
    connection.settle(1, isAck: false)
    connection.settle(2, isAck: false)
    advance(time, bySeconds: 0)
    #expect(renewals == 1)
    connection.cut()
    let next = Connection(outbox)
    for number in 2...4 { outbox.publish(message(number)) }
    advance(time, bySeconds: 1.5)
    // One is still under way.
    next.settle(1, isAck: false)
    next.settle(2, isAck: false)
    advance(time, bySeconds: 1)
    #expect(renewals == 1)
    advance(time, bySeconds: 1.1)
    #expect(renewals == 2)
  }

  @Test("opens no connection early for hundreds of given-up replies")
  func noRenewalForMany() throws {
    let (loop, outbox, owner) = try make()
    outbox.renewConnection = { Issue.record("another connection") }
    let connection = Connection(outbox)
    for number in 0..<300 {
      outbox.publish(hopeless(number))
      connection.settle(UInt16(number + 1), isAck: false)
    }
    loop.turn(waitingAtMost: 0)
    #expect(owner.unreached == 300)
  }

  private func advance(_ time: Turn, bySeconds seconds: Double) {
    time.begin(now: time.now.advanced(bySeconds: seconds), wallClock: 0)
    time.runTimers()
  }

  @Test("gives up a reply that the user may not write, after the call that published it")
  func forbiddenReply() {
    let (time, outbox, owner) = makeInOwnTime()
    let connection = Connection(outbox)
    outbox.publish(message(0, .reply))
    // Refused once among others, and once alone.
    for _ in 0..<2 { connection.failed(outbox.slots.indices[0], .channelClosed(.accessRefused("no"))) }
    #expect(owner.confirmed == [0] && owner.unreached == 1)
    outbox.publish(message(1, .reply))
    #expect(owner.confirmed == [0])
    advance(time, bySeconds: 0)
    #expect(owner.confirmed == [0, 1] && owner.unreached == 2 && outbox.backlog == 0)
  }

  private func directReply(_ owner: Int, _ node: String) -> Publication {
    let publication = message(owner, .reply)
    publication.exchange = []
    // The external term of a process's id: its tags, the node's name, and twelve bytes of numbers.
    let id = [0x83, 0x58, 0x76, 0, UInt8(node.utf8.count)] + Array(node.utf8) + (0..<12).map { UInt8($0) }
    publication.routingKey = Array("amq.rabbitmq.reply-to.\(Data(id).base64EncodedString()).key".utf8)
    return publication
  }

  /// The broker has processed a direct reply to the node "good".
  private func makeWithKnownNode() -> (Turn, Outbox, Owner, Connection) {
    let (time, outbox, owner) = makeInOwnTime()
    let connection = Connection(outbox)
    outbox.publish(directReply(0, "good"))
    connection.settle(1)
    return (time, outbox, owner, connection)
  }

  @Test("publishes direct replies to an unknown node one at a time, until the broker has processed one")
  func unknownNode() {
    let (_, outbox, owner) = makeInOwnTime()
    let connection = Connection(outbox)
    for number in 0..<5 { outbox.publish(directReply(number, "good")) }
    outbox.publish(message(5))
    #expect(connection.published == 2)
    connection.settle(1)
    #expect(owner.confirmed == [0] && connection.published == 5)
  }

  @Test("gives up direct replies to a node that ends connections, for a while; other messages are published again at once")
  func endedNode() {
    let (time, outbox, owner, first) = makeWithKnownNode()
    var connection = first
    outbox.publish(directReply(1, "good"))
    outbox.publish(directReply(2, "bad"))
    outbox.publish(directReply(3, "bad"))
    outbox.publish(message(4))
    connection.crash()
    #expect(owner.confirmed == [0, 2])
    connection = Connection(outbox)
    #expect(connection.published == 2)
    advance(time, bySeconds: 0)
    #expect(owner.confirmed == [0, 2, 3])
    for sequence in [1, 2] as [UInt16] { connection.settle(sequence) }
    #expect(Set(owner.confirmed) == [0, 1, 2, 3, 4])
    outbox.publish(directReply(5, "bad"))
    advance(time, bySeconds: 0)
    #expect(owner.confirmed.last == 5 && connection.published == 0)
    advance(time, bySeconds: 31)
    outbox.publish(directReply(6, "bad"))
    #expect(connection.published == 1)
  }

  @Test("finds out which of the known nodes has ended, and loses no reply to another one")
  func nodeEnds() {
    let (time, outbox, owner) = makeInOwnTime()
    var connection = Connection(outbox)
    for (number, node) in ["a", "b"].enumerated() {
      outbox.publish(directReply(number, node))
      connection.settle(UInt16(number + 1))
    }
    for number in 2..<12 { outbox.publish(directReply(number, number % 2 == 0 ? "a" : "b")) }
    #expect(connection.published == 10)
    connection.crash()
    #expect(owner.confirmed == [0, 1])
    connection = Connection(outbox)
    #expect(connection.published == 1)
    // Node a has ended.
    connection.crash()
    #expect(owner.confirmed == [0, 1, 2])
    connection = Connection(outbox)
    #expect(connection.published == 1)
    connection.settle(1)
    #expect(connection.published == 4)
    advance(time, bySeconds: 0)
    #expect(Set(owner.confirmed) == [0, 1, 2, 3, 4, 6, 8, 10])
    for sequence in 2...5 as ClosedRange<UInt16> { connection.settle(sequence) }
    #expect(Set(owner.confirmed) == Set(0..<12) && owner.unreached == 5)
  }

  @Test("blames no reply for a command that the broker could not carry out")
  func failedCommand() {
    let (_, outbox, owner) = makeInOwnTime()
    outbox.publish(directReply(0, "new"))
    outbox.publish(message(1, .reply))
    for _ in 0..<4 { Connection(outbox).crash("INTERNAL_ERROR - Cannot declare a queue") }
    let connection = Connection(outbox)
    #expect(connection.published == 2)
    for sequence in 1...2 as ClosedRange<UInt16> { connection.settle(sequence) }
    #expect(Set(owner.confirmed) == [0, 1] && owner.unreached == 0)
  }

  @Test("tells nodes apart whose names differ in the last character", arguments: ["good", "goodnode", "goodnodes"])
  func similarNodes(_ node: String) {
    let (time, outbox, owner) = makeInOwnTime()
    var connection = Connection(outbox)
    outbox.publish(directReply(0, node))
    connection.settle(1)
    outbox.publish(directReply(1, node.dropLast() + "x"))
    connection.crash()
    connection = Connection(outbox)
    outbox.publish(directReply(2, node))
    advance(time, bySeconds: 0)
    connection.settle(1)
    #expect(owner.confirmed == [0, 1, 2] && owner.unreached == 1)
  }

  @Test("a user who may not reply is refused once for each connection")
  func forbiddenForLong() {
    let (time, outbox, owner) = makeInOwnTime()
    let connection = Connection(outbox)
    outbox.publish(message(0, .reply))
    for _ in 0..<2 { connection.failed(outbox.slots.indices[0], .channelClosed(.accessRefused("no"))) }
    // The channel is open again.
    outbox.use(connection.publisher)
    outbox.publish(message(1, .reply))
    advance(time, bySeconds: 0)
    #expect(owner.confirmed == [0, 1] && owner.unreached == 2)
    _ = Connection(outbox)
    outbox.publish(message(2, .reply))
    advance(time, bySeconds: 0)
    #expect(owner.confirmed == [0, 1] && outbox.backlog == 1)
  }

  @Test("gives up direct replies to all unknown nodes while different ones have ended connections")
  func manyNodes() {
    let (time, outbox, owner, first) = makeWithKnownNode()
    var connection = first
    for number in 1...3 {
      outbox.publish(directReply(number, "forged\(number)"))
      connection.crash()
      connection = Connection(outbox)
    }
    outbox.publish(directReply(4, "forged4"))
    outbox.publish(directReply(5, "good"))
    advance(time, bySeconds: 0)
    #expect(Set(owner.confirmed) == [0, 1, 2, 3, 4] && connection.published == 1)
  }

  @Test("gives a queue without confirms its own window, so that neither other queues nor pushes wait for it")
  func stuck() throws {
    let (time, outbox, owner) = makeInOwnTime()
    let connection = Connection(outbox)
    for number in 0..<5_000 { outbox.publish(message(number)) }
    #expect(connection.published == 1_000 && outbox.isFull)
    outbox.publish(message(5_000, .result))
    connection.settle(1_001)
    #expect(owner.confirmed == [5_000])
    outbox.look()
    #expect(outbox.isFull && outbox.stuck == 0)
    advance(time, bySeconds: 5.1)
    outbox.look()
    #expect(!outbox.isFull && outbox.stuck == 5_000)
    for number in 0..<1_500 { outbox.publish(message(number, .deadLetter)) }
    #expect(connection.published == 2_000)
    // The queue confirms again, and counts again when it has caught up.
    connection.settle(1)
    #expect(!outbox.isFull && outbox.stuck == 4_999)
  }

  @Test("limits a stuck queue on the next connection too, until it has confirmed something")
  func stuckOnTheNextConnection() throws {
    let (time, outbox, _) = makeInOwnTime()
    let first = Connection(outbox)
    for number in 0..<5_000 { outbox.publish(message(number)) }
    advance(time, bySeconds: 5.1)
    outbox.look()
    #expect(!outbox.isFull)
    first.cut()
    outbox.look()
    // Without a connection nothing is confirmed at all.
    #expect(outbox.isFull && outbox.stuck == 0)
    let next = Connection(outbox)
    outbox.look()
    #expect(!outbox.isFull && outbox.stuck == 5_000)
    for sequence in 1...UInt16(4_002) { next.settle(sequence) }
    outbox.look()
    #expect(outbox.stuck == 0 && outbox.backlog == 998)
  }

  @Test("delays only the refused queue's messages, with that queue's own pauses")
  func refused() throws {
    let (time, outbox, owner) = makeInOwnTime()
    let connection = Connection(outbox)
    outbox.publish(message(0))
    connection.settle(1, isAck: false)
    outbox.publish(message(1, .result))
    #expect(connection.published == 1)
    connection.settle(2, isAck: false)
    outbox.look()
    #expect(connection.published == 0 && outbox.stuck == 2)
    advance(time, bySeconds: 2)
    #expect(connection.published == 2)
    connection.settle(3)
    outbox.look()
    #expect(owner.confirmed.count == 1 && outbox.stuck == 1)
    connection.settle(4)
    #expect(owner.confirmed.sorted() == [0, 1] && outbox.stuck == 0)
  }

  @Test("limits the messages that wait for stuck queues")
  func ceiling() throws {
    let (time, outbox, _) = makeInOwnTime()
    let connection = Connection(outbox)
    for number in 0..<Outbox.ceiling { outbox.publish(message(number)) }
    advance(time, bySeconds: 6)
    outbox.look()
    #expect(outbox.stuck == Outbox.ceiling && outbox.isFull && connection.published == 1_000)
  }
}
