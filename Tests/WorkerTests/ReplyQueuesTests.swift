import AMQP
import DeviceRegistry
import Logging
import PushCore
import Reactor
import Testing
import Wire

@testable import Broker
@testable import Delivery
@testable import Worker

@Suite("Where results may go")
struct ReplyQueuesTests {
  /// Answers when it is told to.
  private final class Asked: ReplyBroker {
    var isReachable = true
    var questions: [String] = []
    private var completions: [(ReplyQueueKind?) -> Void] = []
    func inspect(_ queue: String, _ completion: @escaping (ReplyQueueKind?) -> Void) {
      questions.append(queue)
      completions.append(completion)
    }
    func answer(_ kind: ReplyQueueKind?) { completions.removeFirst()(kind) }
  }

  private let loop: EventLoop
  private let outbox: Outbox
  private let broker = Asked()
  private let replyQueues: ReplyQueues
  private let pipeline: Pipeline
  private let changes: ChangeQueue
  private let registry: RegistryClient

  /// An application without a credential: what is taken ends at once, as a dead letter and a result.
  init() throws {
    loop = try EventLoop()
    let log = Log(level: .error)
    outbox = Outbox(time: loop.time, log: log)
    let app = Array("com.example.app".utf8)
    replyQueues = ReplyQueues(time: loop.time)
    replyQueues.listed = [Array("billing.replies".utf8)]
    replyQueues.broker = broker
    registry = try RegistryClient("sqlite:/proc/nowhere/registry.db", limits: RegistryLimits(), host: LoopHost(loop), log: log)
    pipeline = Pipeline(
      apps: Applications([Application(id: app, packages: [], routes: SenderRoutes())]), outbox: outbox, time: loop.time,
      replyQueues: replyQueues)
    changes = ChangeQueue(
      apps: pipeline.apps, registry: registry, limits: RegistryLimits(), publications: pipeline.publisher.messages,
      replyQueues: replyQueues,
      outbox: outbox, time: loop.time, log: log)
    replyQueues.onAnswer = { [pipeline, changes] in
      pipeline.decideReplies()
      changes.decideReplies()
    }
  }

  private static let request = #"{"to":"\#(String(repeating: "a", count: 64))"}"#

  private func delivery(to queue: String, _ body: String = request, by exchange: String = "push.send") -> Delivery {
    var delivery = Delivery()
    delivery.exchange = Array(exchange.utf8)
    delivery.properties.replyTo = Array(queue.utf8)
    delivery.body = Array(body.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    return delivery
  }

  private func send(to queue: String, _ body: String = request, by exchange: String = "push.send") {
    pipeline.accept(delivery(to: queue, body, by: exchange), from: .sendNormal)
  }

  private func turn() { loop.turn(waitingAtMost: 0) }

  /// What is to be published: codes of dead letters, and queues of replies.
  private func takeAll() -> [String] {
    var all: [String] = []
    for slot in outbox.slots.indices {
      guard let publication = outbox.slots[slot] else { continue }
      switch publication.kind {
      case .reply: all.append("to " + String(decoding: publication.routingKey, as: UTF8.self))
      default: all.append(String(decoding: publication.properties.headers.string("x-push-error") ?? [], as: UTF8.self))
      }
      outbox.confirmed(slot)
    }
    return all.sorted()
  }

  @Test("direct reply-to, what the broker has named and what is listed need no question")
  func byName() {
    for queue in ["amq.rabbitmq.reply-to.g1h2AA5y.6uHwoSWk==", "amq.gen-OPDmRSzGVtBb6aIJRzCAKA", "billing.replies"] {
      send(to: queue)
      #expect(takeAll() == ["MismatchSenderId", "to \(queue)"])
    }
    turn()
    #expect(broker.questions.isEmpty)
  }

  @Test("an exclusive queue is allowed, any other is not: nothing is done and nothing said before that is known")
  func asked() {
    for (isExclusive, queue) in [(true, "mine"), (false, "another's")] {
      send(to: queue)
      send(to: queue)
      turn()
      #expect(broker.questions.last == queue && takeAll() == [] && pipeline.table.count == 2)
      broker.answer(isExclusive ? .exclusive : .shared)
      #expect(
        takeAll()
          == (isExclusive ? ["MismatchSenderId", "MismatchSenderId", "to mine", "to mine"] : ["NotAllowed", "NotAllowed"]))
      // Known for a while.
      send(to: queue)
      #expect(takeAll() == (isExclusive ? ["MismatchSenderId", "to mine"] : ["NotAllowed"]))
    }
    #expect(broker.questions == ["mine", "another's"] && pipeline.table.count == 0)
  }

  @Test("for a queue that isn't there the request is done and nothing said, now or later; the next request asks again")
  func missing() throws {
    send(to: "mine")
    turn()
    broker.answer(.missing)
    let letter = try #require(outbox.slots.indices.first.flatMap { outbox.slots[$0] })
    #expect(letter.properties.replyTo == nil && takeAll() == ["MismatchSenderId"])
    // Its owner has come back.
    send(to: "mine")
    turn()
    broker.answer(.exclusive)
    #expect(takeAll() == ["MismatchSenderId", "to mine"] && broker.questions == ["mine", "mine"])
    // What couldn't be read was not looked at any further: its replay is asked for again.
    send(to: "another", "no JSON")
    turn()
    broker.answer(.missing)
    let unread = try #require(outbox.slots.indices.first.flatMap { outbox.slots[$0] })
    #expect(unread.properties.replyTo == Array("another".utf8) && takeAll() == ["InvalidJSON"])
  }

  @Test("a change whose answer's queue isn't there is made, and not answered")
  func missingForChange() throws {
    changes.registryChangeDelivered(delivery(to: "mine", "first", by: ""))
    turn()
    broker.answer(.missing)
    #expect(takeAll() != ["NotAllowed"] && changes.count == 0)
  }

  @Test("what is said of a queue is the broker's answer to the question, not the end of the connection")
  func kinds() {
    #expect(ReplyQueueKind(.success(.queue(messages: 0, consumers: 1)), isConnected: true) == .shared)
    #expect(ReplyQueueKind(.failure(.resourceLocked("")), isConnected: true) == .exclusive)
    #expect(ReplyQueueKind(.failure(.notFound("")), isConnected: true) == .missing)
    #expect(ReplyQueueKind(.failure(.accessRefused("")), isConnected: true) == .shared)
    for end in [ConnectionEnd.closedByBroker(code: 501, ""), .preconditionFailed(""), .notFound(""), .accessRefused("")] {
      #expect(ReplyQueueKind(.failure(end), isConnected: false) == nil, "\(end)")
    }
    #expect(ReplyQueueKind(.failure(.heartbeatMissed), isConnected: false) == nil)
  }

  @Test("who may not send to the application has nothing asked for, and is answered only where that is known to be allowed")
  func rightsFirst() {
    pipeline.apps.put(
      Array("com.example.app".utf8), packages: [], rights: AppRights(producers: [Array("billing".utf8)]), senders: [])
    send(to: "another's")
    send(to: "billing.replies")
    turn()
    #expect(takeAll() == ["NotAllowed", "NotAllowed", "to billing.replies"] && broker.questions.isEmpty)
  }

  @Test(
    "a producer's questions are bounded: what comes beyond them goes to the ladder, is asked for later, and others' at once")
  func crowd() throws {
    for number in 0..<70 { send(to: "q\(number)") }
    #expect(pipeline.table.entries.filter { $0.isInUse && $0.source.reply == .unknown }.count == 64)
    let waiting = outbox.slots.indices.compactMap { outbox.slots[$0] }
    #expect(waiting.count == 6 && waiting.allSatisfy { $0.kind == .retry && $0.properties.replyTo != nil })
    let later = try #require(waiting.first)
    #expect(later.properties.headers["x-push-producer"] == .string([]))
    _ = takeAll()
    var other = delivery(to: "other")
    other.properties.userID = Array("billing".utf8)
    pipeline.accept(other, from: .sendNormal)
    #expect(pipeline.table.entries.filter { $0.isInUse && $0.source.reply == .unknown }.count == 65)
    for _ in 0..<65 {
      turn()
      broker.answer(.shared)
    }
    #expect(takeAll().count == 65 && pipeline.table.count == 0)
    // It comes back, and is asked for.
    var returned = delivery(to: "")
    returned.exchange = Array("push.return".utf8)
    returned.properties = later.properties
    pipeline.accept(returned, from: .sendNormal)
    turn()
    #expect(broker.questions.last == later.properties.replyTo.map { String(decoding: $0, as: UTF8.self) })
    broker.answer(.exclusive)
    #expect(takeAll() == ["MismatchSenderId", "to q64"])
  }

  @Test("what can't be read is not answered where no result may go")
  func unread() {
    send(to: "another's", "no JSON")
    turn()
    broker.answer(.shared)
    #expect(takeAll() == ["NotAllowed"])
  }

  @Test("what a worker has sent on was allowed, and is asked for no more")
  func sentOn() {
    send(to: "another's", by: "push.return")
    #expect(takeAll() == ["MismatchSenderId", "to another's"])
  }

  @Test("without the setting every queue but the fleet's own is allowed; an empty one allows none by its name alone")
  func setting() {
    replyQueues.listed = nil
    send(to: "another's")
    #expect(takeAll() == ["MismatchSenderId", "to another's"])
    send(to: "push.results")
    #expect(takeAll() == ["MismatchSenderId"])
    replyQueues.listed = []
    send(to: "billing.replies")
    turn()
    #expect(broker.questions == ["billing.replies"])
  }

  @Test("one question at a time; what couldn't be asked is asked again, and a lost channel leaves nothing behind")
  func oneAtATime() {
    for number in 0..<3 { send(to: "q\(number)") }
    turn()
    #expect(broker.questions == ["q0"])
    broker.isReachable = false
    broker.answer(nil)
    turn()
    #expect(broker.questions == ["q0"] && pipeline.table.count == 3)
    pipeline.channelLost()
    #expect(pipeline.table.count == 0 && takeAll() == [])
    broker.isReachable = true
    send(to: "q2")
    replyQueues.ask()
    for _ in 0..<3 {
      turn()
      broker.answer(.exclusive)
    }
    #expect(broker.questions == ["q0", "q1", "q2", "q0"] && takeAll() == ["MismatchSenderId", "to q2"])
  }

  @Test("a name with control characters, or that is no text, is refused without a question")
  func oddNames() {
    send(to: "a\u{0}b")
    var odd = delivery(to: "")
    odd.properties.replyTo = [0xFF, 0xFE]
    pipeline.accept(odd, from: .sendNormal)
    turn()
    #expect(takeAll() == ["NotAllowed", "NotAllowed"] && broker.questions.isEmpty)
  }

  @Test("changes of the registry wait in their order for what one of them asks")
  func changesInOrder() {
    for (queue, body) in [("mine", "first"), ("billing.replies", "second"), ("another's", "third")] {
      changes.registryChangeDelivered(delivery(to: queue, body, by: ""))
    }
    turn()
    #expect(takeAll() == [] && changes.count == 3)
    broker.answer(.exclusive)
    #expect(takeAll() == ["to billing.replies", "to mine"])
    turn()
    broker.answer(.shared)
    #expect(takeAll() == ["NotAllowed"] && changes.count == 0)
    changes.registryChangeDelivered(delivery(to: "other", "lost", by: ""))
    changes.registryChangesLost()
    #expect(changes.count == 0)
  }

  @Test("a change by who isn't a producer of its application is answered so, or a dead letter when nobody waits")
  func changesOfProducers() {
    pipeline.apps.put(
      Array("com.example.app".utf8), packages: [], rights: AppRights(producers: [Array("billing".utf8)]), senders: [])
    func change(_ user: String?, _ op: String, to queue: String = "", by exchange: String = "push.registry") {
      var change = delivery(
        to: queue, #"{"op":"\#(op)","topic":"t","tokens":["a"]}"#, by: exchange)
      change.properties.userID = user.map { Array($0.utf8) }
      changes.registryChangeDelivered(change)
    }
    change("mallory", "subscribe", to: "billing.replies")
    let answer = outbox.slots.indices.first.flatMap { outbox.slots[$0] }?.body ?? []
    #expect(String(decoding: answer, as: UTF8.self).hasPrefix(#"{"error":"NotAllowed","reason":"user_id: "#))
    #expect(takeAll() == ["to billing.replies"])
    change(nil, "unsubscribe")
    let letter = outbox.slots.indices.first.flatMap { outbox.slots[$0] }
    #expect(letter?.properties.headers["x-push-producer"] == .string([]))
    #expect(takeAll() == ["NotAllowed"])
    change("billing", "subscribe")
    // An operator's replay of one that a worker had found to be allowed.
    change(nil, "subscribe", by: "push.return")
    #expect(takeAll() == [] && changes.count == 2)
  }
}
