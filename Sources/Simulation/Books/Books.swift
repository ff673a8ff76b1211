import AMQP
import BrokerModel
import PushCore
import Simulator
import Wire

/// What was asked for and what has become of it, by everything that the outside sees: the broker's queues and the providers' journals.
final class Books {
  private unowned let world: World
  /// What the broker has confirmed to the producer.
  private(set) var requests: [String: Request] = [:]
  /// When it did, in unix milliseconds.
  private(set) var acceptedAt: [String: Int64] = [:]
  /// Answers of 200, by request and token: when they were given, in unix milliseconds.
  private(set) var delivered: [String: [String: [Int64]]] = [:]
  /// The same times by application and provider, and how often each request was tried with a device.
  private(set) var deliveries: [AppRoute: [Int64]] = [:]
  private(set) var attempts: [String: [String: Int]] = [:]
  /// Bodies of results, by request.
  private(set) var results: [String: [SimulatedResult]] = [:]
  /// The same of results that went to the backend, and answers to changes of the registry.
  private(set) var replies: [String: [SimulatedResult?]] = [:]
  /// Dead letters of each request.
  private(set) var letters: [String: Int] = [:]
  /// What no worker here can read, and all have to leave alone.
  private(set) var kept: Set<String> = []
  private(set) var changes = RegistryLedger()
  private(set) var copies = Copies()
  /// Retries, dead letters and results of a request that its publisher has a confirm of.
  private var confirmed: [String: Int] = [:]
  private var journals: [Journal] = []
  private(set) var pushes = 0
  /// Requests that came back too often, and of which the broker has made dead letters: nobody can say more of them.
  private(set) var givenUp: Set<String> = []
  /// When each key's provider tokens were issued, in unix seconds.
  private(set) var providerTokens: [String: Set<Int64>] = [:]

  init(_ world: World) { self.world = world }

  func follow(_ journal: Journal) { journals.append(journal) }

  func accepted(_ request: Request) {
    requests[request.id] = request
    acceptedAt[request.id] = world.wallClock
    world.note("accepted \(request.id)")
  }

  func keep(_ id: String) {
    kept.insert(id)
    world.note("accepted \(id)")
  }

  func expect(_ order: RegistryOrder) { changes.expect(order) }

  func accepted(_ order: RegistryOrder) {
    changes.accepted.insert(order.id)
    world.note("accepted \(order.id): \(order.operation) \(order.device)")
  }

  // MARK: the broker's side

  static let registryQueue = "push.registry"

  func observe(_ event: BrokerEvent) {
    switch event {
    case .published(let message, let queues, let client):
      if queues.contains(Producer.replies) { return replied(message) }
      if queues.contains(Self.registryQueue) { return enqueued(message) }
      guard let id = message.id else { return }
      for queue in queues { stored(message, id, queue) }
      if queues.contains(where: Self.isWork) { copies.published(message.number, id, by: client) }
    case .deadLettered(let message, let queue, let reason, let targets):
      guard let id = message.id else { return }
      if Self.isWork(queue) { copies.left(id) }
      for queue in targets { stored(message, id, queue) }
      guard targets.contains("push.dead") else { return }
      world.note("\(id) died in \(queue): \(reason.rawValue)")
      if reason != .expired { givenUp.insert(id) }
    case .confirmed(let message, let client):
      copies.confirmed(message.number)
      if let id = message.correlationID, message.routingKey.elementsEqual(Producer.replies.utf8) { changes.answered.insert(id) }
      if client.name != "producer", let id = message.id { confirmed[id, default: 0] += 1 }
    case .acknowledged(let message, Self.registryQueue, let client):
      guard let id = message.messageID else { return }
      world.note("connection \(client.number) acknowledged \(id)")
      guard !mayDropReplies, !changes.answered.contains(id) else { return }
      world.fail("\(client.name) acknowledged \(id) with no answer confirmed")
    case .acknowledged(let message, let queue, let client):
      guard let id = message.id, Self.isWork(queue) else { return }
      copies.left(id)
      checkAcknowledgement(of: id, queue, client)
    case .dropped(let message, let queue, let reason):
      if queue == Self.registryQueue { changes.dropped(message.messageID) }
      guard let id = message.id, Self.isWork(queue) else { return }
      copies.left(id)
      if case .crash = reason { return }
      world.fail("\(id) was dropped from \(queue): \(reason)")
    case .requeued(let message, let queue, _):
      if Self.isWork(queue), let id = message.id { copies.cameBack(id) }
    case .delivered(let message, Self.registryQueue, _, let client):
      world.note("connection \(client.number) is given \(message.messageID ?? "a change")")
    case .delivered, .refused, .returned: return
    }
  }

  private func enqueued(_ message: Message) {
    changes.enqueued(message.messageID)
    world.note("\(message.messageID ?? "a change") is in the queue")
  }

  private func stored(_ message: Message, _ id: String, _ queue: String) {
    switch queue {
    case "push.results":
      if var result = SimulatedResult(message.body) {
        result.at = world.wallClock
        results[id, default: []].append(result)
      } else {
        world.fail("a result that can't be read")
      }
    case "push.dead": letters[id, default: 0] += 1
    case _ where Self.isWork(queue): copies.came(id)
    default: return
    }
  }

  private func replied(_ message: Message) {
    guard let id = message.correlationID else { return world.fail("an answer without a correlation id") }
    replies[id, default: []].append(SimulatedResult(message.body))
  }

  /// Where requests and their copies wait for workers.
  static func isWork(_ queue: String) -> Bool {
    queue.hasPrefix("push.send.") || queue.hasPrefix("push.fanout.") || queue.hasPrefix("push.retry.")
      || queue.hasPrefix("push.hold.") || queue == "push.quarantine"
  }

  /// Workers take from it.
  static func isTaken(_ queue: String) -> Bool { isWork(queue) || queue == registryQueue }

  /// Something of the request is still in a queue, or an outcome of it is safe.
  private func checkAcknowledgement(of id: String, _ queue: String, _ client: Client) {
    guard copies.waiting(of: id) <= 0, confirmed[id, default: 0] == 0 else { return }
    world.fail("\(client.name) acknowledged \(id) of \(queue) with no consequence confirmed")
  }

  // MARK: the providers' side

  /// To be called once, at the end: what the providers have seen.
  func readJournals() {
    for journal in journals {
      for entry in journal.entries { read(entry) }
      for violation in journal.violations { world.fail("HTTP/2: \(violation)") }
    }
  }

  private func read(_ entry: JournalEntry) {
    guard !entry.token.isEmpty, let messageID = Self.messageID(in: entry.payload) else { return }
    let app = Workload.app(of: entry.tokenText)
    let id = "\(Scenario.app(app))/\(messageID)"
    pushes += 1
    for violation in entry.violations { world.fail("\(id): \(violation)") }
    let request = requests[id]
    if let authorization = entry.authorization {
      let key = String(decoding: authorization.keyID, as: UTF8.self)
      providerTokens[key, default: []].insert(authorization.issuedAt)
      if let request, key != Scenario.keyID(app: app, sender: request.sender) { world.fail("\(id) was sent by key \(key)") }
    }
    if let request, entry.time > request.deadline + tolerance { world.fail("\(id) was sent after its deadline") }
    attempts[id, default: [:]][entry.tokenText, default: 0] += 1
    guard entry.status == 200 else { return }
    deliveries[AppRoute(app: app, platform: Workload.platform(of: entry.tokenText)), default: []].append(entry.time)
    delivered[id, default: [:]][entry.tokenText, default: []].append(entry.time)
  }

  /// Milliseconds between a worker's look at the clock and the provider's, clocks that differ included. Longer where a connection stalls with
  /// what was sent in time.
  var tolerance: Int64 = 6_000
  var mayDropReplies = false

  /// The workload's own mark in the payload.
  private static func messageID(in payload: [UInt8]) -> String? {
    guard let document = try? JSONDocument(payload) else { return nil }
    var node = document.value("request", of: document.root)
    if node == nil, let message = document.value("message", of: document.root), let data = document.value("data", of: message) {
      node = document.value("request", of: data)
    }
    return node.map { document.text($0) }
  }

  /// Pushes that a device got more than once.
  var duplicates: Int { delivered.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + max(0, $1.count - 1) } } }
}

extension Message {
  /// Of the workload: application and message id.
  var id: String? {
    guard let app = properties.appID, let messageID else { return nil }
    return String(decoding: app, as: UTF8.self) + "/" + messageID
  }

  var messageID: String? { properties.messageID.map { String(decoding: $0, as: UTF8.self) } }
  var correlationID: String? { properties.correlationID.map { String(decoding: $0, as: UTF8.self) } }
}
