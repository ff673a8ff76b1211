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
  /// Answers when the test says so.
  private final class Asked: ReplyBroker {
    var isReachable = true
    var questions: [String] = []
    private var completions: [(ReplyQueues.Verdict?) -> Void] = []
    func inspect(_ queue: String, _ completion: @escaping (ReplyQueues.Verdict?) -> Void) {
      questions.append(queue)
      completions.append(completion)
    }
    func answer(_ verdict: ReplyQueues.Verdict?) { completions.removeFirst()(verdict) }
  }

  private let loop: EventLoop
  private let outbox: Outbox
  private let broker = Asked()
  private let replyQueues: ReplyQueues
  private let pipeline: Pipeline
  private let changes: ChangeQueue
  private let registry: RegistryClient

  /// An application without a credential: an accepted request ends at once, with a dead letter and a result.
  init() throws {
    loop = try EventLoop()
    let log = Log(level: .error)
    outbox = Outbox(time: loop.time, log: log)
    let app = Array("com.example.app".utf8)
    replyQueues = ReplyQueues(time: loop.time)
    replyQueues.listed = [Array("billing.replies".utf8)]
    replyQueues.broker = broker
    registry = try RegistryClient(.sqlite(path: "/proc/nowhere/registry.db"), limits: RegistryLimits(), host: loop, log: log)
    pipeline = Pipeline(
      apps: Applications(app), outbox: outbox, time: loop.time,
      replyQueues: replyQueues)
    let tools = ShardTools(
      apps: pipeline.apps, registry: registry, publications: pipeline.tools.publications, outbox: outbox, time: loop.time,
      log: log)
    changes = ChangeQueue(tools, limits: RegistryLimits(), replyQueues: replyQueues)
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

  /// The publications: codes of dead letters, and queues of replies.
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

  @Test("direct reply-to, the broker's own names and listed queues need no check")
  func byName() {
    for queue in ["amq.rabbitmq.reply-to.g1h2AA5y.6uHwoSWk==", "amq.gen-OPDmRSzGVtBb6aIJRzCAKA", "billing.replies"] {
      send(to: queue)
      #expect(takeAll() == ["MismatchSenderId", "to \(queue)"])
    }
    turn()
    #expect(broker.questions.isEmpty)
  }

  @Test("an exclusive queue is allowed, others are not; the request waits until the check is done")
  func asked() {
    for (isExclusive, queue) in [(true, "mine"), (false, "another's")] {
      send(to: queue)
      send(to: queue)
      turn()
      #expect(broker.questions.last == queue && takeAll() == [] && pipeline.table.count == 2)
      broker.answer(isExclusive ? .allowed : .refused)
      #expect(
        takeAll()
          == (isExclusive ? ["MismatchSenderId", "MismatchSenderId", "to mine", "to mine"] : ["NotAllowed", "NotAllowed"]))
      // Known for a while.
      send(to: queue)
      #expect(takeAll() == (isExclusive ? ["MismatchSenderId", "to mine"] : ["NotAllowed"]))
    }
    #expect(broker.questions == ["mine", "another's"] && pipeline.table.count == 0)
  }

  @Test("for a missing queue the request is sent without a reply, and the next request checks again")
  func missing() throws {
    send(to: "mine")
    turn()
    broker.answer(.dropped)
    let letter = try #require(outbox.slots.indices.first.flatMap { outbox.slots[$0] })
    #expect(letter.properties.replyTo == nil && takeAll() == ["MismatchSenderId"])
    // Its owner has come back.
    send(to: "mine")
    turn()
    broker.answer(.allowed)
    #expect(takeAll() == ["MismatchSenderId", "to mine"] && broker.questions == ["mine", "mine"])
    // The unreadable request was not checked further: its replay is checked again.
    send(to: "another", "no JSON")
    turn()
    broker.answer(.dropped)
    let unread = try #require(outbox.slots.indices.first.flatMap { outbox.slots[$0] })
    #expect(unread.properties.replyTo == Array("another".utf8) && takeAll() == ["InvalidJSON"])
  }

  @Test("a change with a missing reply queue is applied, without a reply")
  func missingForChange() throws {
    changes.registryChangeDelivered(delivery(to: "mine", "first", by: ""))
    turn()
    broker.answer(.dropped)
    #expect(takeAll() != ["NotAllowed"] && changes.count == 0)
  }

  @Test("the broker's answer to the check decides, not the end of the connection")
  func kinds() {
    #expect(ReplyQueues.Verdict(.success(.queue(messages: 0, consumers: 1)), isConnected: true) == .refused)
    #expect(ReplyQueues.Verdict(.failure(.resourceLocked("")), isConnected: true) == .allowed)
    #expect(ReplyQueues.Verdict(.failure(.notFound("")), isConnected: true) == .dropped)
    #expect(ReplyQueues.Verdict(.failure(.accessRefused("")), isConnected: true) == .refused)
    for end in [ConnectionEnd.closedByBroker(code: 501, ""), .preconditionFailed(""), .notFound(""), .accessRefused("")] {
      #expect(ReplyQueues.Verdict(.failure(end), isConnected: false) == nil, "\(end)")
    }
    #expect(ReplyQueues.Verdict(.failure(.heartbeatMissed), isConnected: false) == nil)
  }

  @Test("for a producer without rights no check is made, and a reply is sent only to a queue known as allowed")
  func rightsFirst() {
    pipeline.apps.put(
      Array("com.example.app".utf8), packages: [], rights: AppRights(producers: [Array("billing".utf8)]), senders: [])
    send(to: "another's")
    send(to: "billing.replies")
    turn()
    #expect(takeAll() == ["NotAllowed", "NotAllowed", "to billing.replies"] && broker.questions.isEmpty)
  }

  @Test(
    "a producer's checks are limited; further requests go to the ladder and are checked later, other producers' at once")
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
      broker.answer(.refused)
    }
    #expect(takeAll().count == 65 && pipeline.table.count == 0)
    // It comes back, and its queue is checked.
    var returned = delivery(to: "")
    returned.exchange = Array("push.return".utf8)
    returned.properties = later.properties
    pipeline.accept(returned, from: .sendNormal)
    turn()
    #expect(broker.questions.last == later.properties.replyTo.map { String(decoding: $0, as: UTF8.self) })
    broker.answer(.allowed)
    #expect(takeAll() == ["MismatchSenderId", "to q64"])
  }

  @Test("an unreadable request is not answered on a queue that isn't allowed")
  func unread() {
    send(to: "another's", "no JSON")
    turn()
    broker.answer(.refused)
    #expect(takeAll() == ["NotAllowed"])
  }

  @Test("a worker's own copy was allowed, and isn't checked again")
  func sentOn() {
    send(to: "another's", by: "push.return")
    #expect(takeAll() == ["MismatchSenderId", "to another's"])
  }

  @Test("without the setting all queues except the fleet's are allowed; an empty list allows none by name")
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

  @Test("one check at a time; a failed one is repeated, and a lost channel leaves nothing behind")
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
      broker.answer(.allowed)
    }
    #expect(broker.questions == ["q0", "q1", "q2", "q0"] && takeAll() == ["MismatchSenderId", "to q2"])
  }

  @Test("a name with control characters or invalid text is refused without a check")
  func oddNames() {
    send(to: "a\u{0}b")
    var odd = delivery(to: "")
    odd.properties.replyTo = [0xFF, 0xFE]
    pipeline.accept(odd, from: .sendNormal)
    turn()
    #expect(takeAll() == ["NotAllowed", "NotAllowed"] && broker.questions.isEmpty)
  }

  @Test("registry changes wait in order for the check of one of them")
  func changesInOrder() {
    for (queue, body) in [("mine", "first"), ("billing.replies", "second"), ("another's", "third")] {
      changes.registryChangeDelivered(delivery(to: queue, body, by: ""))
    }
    turn()
    #expect(takeAll() == [] && changes.count == 3)
    broker.answer(.allowed)
    #expect(takeAll() == ["to billing.replies", "to mine"])
    turn()
    broker.answer(.refused)
    #expect(takeAll() == ["NotAllowed"] && changes.count == 0)
    changes.registryChangeDelivered(delivery(to: "other", "lost", by: ""))
    changes.registryChangesLost()
    #expect(changes.count == 0)
  }

  @Test("a change by a user without rights is refused, in its reply or as a dead letter")
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
    // An operator replays a change that a worker had allowed.
    change(nil, "subscribe", by: "push.return")
    #expect(takeAll() == [] && changes.count == 2)
  }
}
