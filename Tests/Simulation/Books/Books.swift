import AMQP
import BrokerModel
import Providers
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
  private(set) var letters: [String: Letters] = [:]
  /// Who is said to be gone, by request, and of whom a provider has said so.
  private(set) var saidGone: [String: Set<String>] = [:]
  private(set) var foundGone: [String: Set<String>] = [:]
  /// What no worker here can read, and all have to leave alone.
  private(set) var kept: Set<String> = []
  private(set) var changes = RegistryLedger()
  private(set) var acknowledgements = AcknowledgementLedger()
  /// The badges that each request's pushes bore, by device.
  private(set) var badges: [String: [String: Set<Int64>]] = [:]
  private(set) var copies = Copies()
  /// Results by their publications' numbers: one without a confirm is published again.
  private var unconfirmedResults: [Int: (request: String, at: MonotonicTime)] = [:]
  private var hands = Hands()
  private var consequences = Consequences()
  /// Whose connection a client is.
  var party: (Client) -> String = { $0.name }
  /// What a worker publishes on must have been in its hand a moment ago; false where that may have stood on the way for longer, or been sent once
  /// before.
  var judgesCopies = false
  /// When the broker last read what had been written to it while it took nothing.
  var lastAlarmEnd: () -> MonotonicTime = { MonotonicTime(nanoseconds: 0) }
  /// Retries, dead letters and results of a request that its publisher has a confirm of.
  private var confirmed: [String: Int] = [:]
  private var journals: [Journal] = []
  private(set) var pushes = 0
  /// Requests that came back too often, and of which the broker has made dead letters: nobody can say more of them.
  private(set) var givenUp: Set<String> = []
  /// When each key's provider tokens were issued, in unix seconds.
  private(set) var providerTokens: [String: Set<Int64>] = [:]

  /// Seconds: a publisher waits a little longer for a confirm, and one that comes later finds its connection given up.
  private static let confirmTimeout = 29.0

  init(_ world: World) { self.world = world }

  func unconfirmedResults(of id: String) -> Int { unconfirmedResults.values.count { $0.request == id } }

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

  func registered(_ registration: String, _ token: String) { acknowledgements.tokens[registration] = token }

  func says(_ id: String, _ said: [AcknowledgementLedger.Said]) { acknowledgements.says(id, said) }

  func accepted(_ order: RegistryOrder) {
    changes.accepted.insert(order.id)
    world.note("accepted \(order.id): \(order.operation) \(order.device)")
  }

  // MARK: the broker's side

  static let registryQueue = "push.registry"
  static let acknowledgementQueue = "push.acks"
  private static let receiptQueue = "push.receipts"
  private static let feedbackQueue = "push.feedback"

  /// A worker's process is gone, with its connections.
  func ended(_ worker: String, connections: some Sequence<Int>) {
    consequences.ended(worker, connections: connections)
    hands.ended(worker)
  }

  private func noteConsequence(_ message: Message, _ client: Client, isConfirmed: Bool) {
    guard client.name != "producer" else { return }
    let isReply = message.routingKey.elementsEqual(Producer.replies.utf8)
    if isReply, mayDropReplies { return }
    guard let id = isReply ? message.correlationID : message.id else { return }
    if isConfirmed {
      consequences.confirmed(message, id, to: party(client))
    } else {
      consequences.published(message, id, by: party(client), on: client.number)
    }
  }

  func observe(_ event: BrokerEvent) {
    switch event {
    case .published(let message, _, let client), .refused(let message, _, let client):
      noteConsequence(message, client, isConfirmed: false)
    case .confirmed(let message, let client): noteConsequence(message, client, isConfirmed: true)
    default: break
    }
    switch event {
    case .published(let message, let queues, let client):
      if queues.contains(Producer.replies) { return replied(message) }
      if queues.contains(Self.registryQueue) { return enqueued(message) }
      if queues.contains(Self.receiptQueue) { return told(message) }
      if queues.contains(Self.acknowledgementQueue) { return acknowledgements.came(message.messageID ?? "") }
      if queues.contains(Self.feedbackQueue) { return fedBack(message) }
      guard let id = message.id else { return }
      for queue in queues { stored(message, id, queue) }
      if queues.contains(where: Self.isWork) {
        copies.published(message.number, id, by: client)
        // Of a broadcast's page, whoever opens the first copy sends it.
        let isPage = queues.contains { $0.hasPrefix("push.fanout.") }
        if client.name != "producer", !isPage { checkCopy(of: id, client) }
      }
    case .deadLettered(let message, let queue, let reason, let targets):
      guard let id = message.id else { return }
      if Self.isWork(queue) {
        copies.left(id)
        hands.left(message, queue)
      }
      for queue in targets { stored(message, id, queue) }
      guard targets.contains("push.dead") else { return }
      world.note("\(id) died in \(queue): \(reason.rawValue)")
      if reason != .expired { givenUp.insert(id) }
    case .confirmed(let message, let client):
      copies.confirmed(message.number)
      if let result = unconfirmedResults[message.number], world.now.seconds(since: result.at) < Self.confirmTimeout {
        unconfirmedResults[message.number] = nil
      }
      if message.routingKey.starts(with: "receipt.".utf8) { return acknowledgements.confirms(message.body) }
      if let id = message.correlationID, message.routingKey.elementsEqual(Producer.replies.utf8) { changes.answered.insert(id) }
      if client.name != "producer", let id = message.id { confirmed[id, default: 0] += 1 }
    case .acknowledged(let message, Self.registryQueue, let client):
      guard let id = message.messageID else { return }
      world.note("connection \(client.number) acknowledged \(id)")
      guard !mayDropReplies, !changes.answered.contains(id) else { return }
      world.fail("\(client.name) acknowledged \(id) with no answer confirmed")
    case .acknowledged(let message, Self.acknowledgementQueue, let client):
      for what in acknowledgements.acknowledged(message.messageID ?? "") {
        world.fail("\(client.name) acknowledged \(message.messageID ?? "") with no receipt confirmed of \(what)")
      }
    case .acknowledged(let message, let queue, let client):
      guard let id = message.id, Self.isWork(queue) else { return }
      copies.left(id)
      hands.left(message, queue)
      checkAcknowledgement(of: id, queue, client)
    case .dropped(let message, let queue, let reason):
      if queue == Self.registryQueue { changes.dropped(message.messageID) }
      if queue == Self.acknowledgementQueue { acknowledgements.dropped(message.messageID ?? "") }
      guard let id = message.id, Self.isWork(queue) else { return }
      copies.left(id)
      hands.left(message, queue)
      if case .crash = reason { return }
      world.fail("\(id) was dropped from \(queue): \(reason)")
    case .requeued(let message, let queue, _):
      guard Self.isWork(queue), let id = message.id else { return }
      copies.cameBack(id)
      hands.cameBack(message, queue, at: world.now)
    case .delivered(let message, Self.registryQueue, _, let client):
      world.note("connection \(client.number) is given \(message.messageID ?? "a change")")
    case .delivered(let message, let queue, _, let client):
      if Self.isWork(queue), let id = message.id { hands.delivered(message, id, queue, to: party(client)) }
    case .refused, .returned: return
    }
  }

  private func enqueued(_ message: Message) {
    changes.enqueued(message.messageID)
    world.note("\(message.messageID ?? "a change") is in the queue")
  }

  private func fedBack(_ message: Message) {
    guard let document = try? JSONDocument(message.body) else { return world.fail("feedback that can't be read") }
    func text(_ name: String) -> String? { document.value(name, of: document.root).map { document.text($0) } }
    if text("event") == "NotRegistered", let app = text("app"), let id = text("message_id"), let token = text("token") {
      saidGone["\(app)/\(id)", default: []].insert(token)
    }
    guard text("event") == "Moved", let token = text("token"), let new = text("new_token") else { return }
    world.note("\(token) moved to \(new)")
    changes.moves.insert(.init(token: token, newToken: new))
  }

  private func told(_ message: Message) {
    if !acknowledgements.tells(message.body) { world.fail("a receipt that can't be read, or of an unknown registration") }
  }

  private func stored(_ message: Message, _ id: String, _ queue: String) {
    switch queue {
    case "push.results":
      if var result = SimulatedResult(message.body) {
        result.at = world.wallClock
        unconfirmedResults[message.number] = (id, world.now)
        results[id, default: []].append(result)
      } else {
        world.fail("a result that can't be read")
      }
    case "push.dead": letters[id, default: Letters()].came(message.body, acknowledgements.tokens)
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
  static func isTaken(_ queue: String) -> Bool {
    isWork(queue) || queue == registryQueue || queue == acknowledgementQueue
  }

  /// Something of the request is still in a queue, or an outcome of it is safe; and all that the worker has published of it is, where this was its only
  /// copy. What it once lost may go on at another one, while what it had published of it before waits for its confirm.
  private func checkAcknowledgement(of id: String, _ queue: String, _ client: Client) {
    let worker = party(client)
    let unconfirmed = consequences.unconfirmed(of: id, by: worker)
    if unconfirmed > 0, hands.hasSettledAll(id, worker) {
      world.fail("\(worker) acknowledged \(id) of \(queue), with \(unconfirmed) consequences not confirmed")
    }
    guard copies.waiting(of: id) <= 0, confirmed[id, default: 0] == 0 else { return }
    world.fail("\(client.name) acknowledged \(id) of \(queue) with no consequence confirmed")
  }

  /// The broker has given to another worker what this one has lost: a copy that had not left by then is one too many.
  private func checkCopy(of id: String, _ client: Client) {
    let worker = party(client)
    guard judgesCopies, world.now > lastAlarmEnd(), let lost = hands.lost(id, by: worker) else { return }
    let seconds = world.now.seconds(since: lost)
    if seconds > Self.longestWay { world.fail("\(worker) publishes a copy of \(id), which it lost \(seconds) s ago") }
  }

  /// Seconds until a worker knows of what the broker has done, and what it had published before has arrived.
  private static let longestWay = 1.0

  // MARK: the providers' side

  /// To be called once, at the end: what the providers have seen.
  func readJournals() {
    for journal in journals {
      for entry in journal.entries { read(entry) }
      for violation in journal.violations { world.fail("HTTP/2: \(violation)") }
    }
  }

  private func read(_ entry: JournalEntry) {
    for value in [Int(entry.time), entry.connection, Int(entry.stream), entry.payload.count, entry.status ?? 0] {
      world.mix(value)
    }
    guard !entry.token.isEmpty else { return }
    guard ![Canary.apnsDevice, Canary.fcmDevice].contains(entry.tokenText) else { return readCanary(entry) }
    // A push that probes a credential names no device of the workload's.
    guard ![CredentialProbe.apnsDevice, CredentialProbe.fcmDevice].contains(entry.tokenText) else { return }
    guard let messageID = Self.messageID(in: entry.payload) else {
      return world.fail("\(entry.tokenText) was sent what no request of the workload says")
    }
    let app = Workload.app(of: entry.tokenText)
    let id = "\(Scenario.app(app))/\(messageID)"
    pushes += 1
    for violation in entry.violations { world.fail("\(id): \(violation)") }
    let request = requests[id]
    if request?.names(entry.tokenText) != true {
      world.fail("\(id) was sent to \(entry.tokenText), and \(request == nil ? "nobody published it" : "doesn't name it")")
    }
    if let authorization = entry.authorization {
      let key = String(decoding: authorization.keyID, as: UTF8.self)
      providerTokens[key, default: []].insert(authorization.issuedAt)
      if let request, key != Scenario.keyID(app: app, sender: request.sender) { world.fail("\(id) was sent by key \(key)") }
    }
    if let request, entry.time > request.deadline + tolerance { world.fail("\(id) was sent after its deadline") }
    attempts[id, default: [:]][entry.tokenText, default: 0] += 1
    if let badge = Self.badge(in: entry.payload) { badges[id, default: [:]][entry.tokenText, default: []].insert(badge) }
    if entry.reason == "Unregistered" || entry.reason == "UNREGISTERED" { foundGone[id, default: []].insert(entry.tokenText) }
    guard entry.status == 200 else { return }
    deliveries[AppRoute(app: app, platform: Workload.platform(of: entry.tokenText)), default: []].append(entry.time)
    delivered[id, default: [:]][entry.tokenText, default: []].append(entry.time)
  }

  /// What asks a silent provider whether it answers reaches nobody.
  private func readCanary(_ entry: JournalEntry) {
    if entry.status == 200 { world.fail("a canary was delivered") }
  }

  /// Milliseconds between a worker's look at the clock and the provider's. Longer where clocks differ, or a connection stalls with what was sent
  /// in time.
  var tolerance: Int64 = 1_000
  var mayDropReplies = false
  /// Requests of which it is known when they had to be sent at the latest; and those among them that trouble had held up.
  var timed = 0
  var timedAfterTrouble = 0

  /// The workload's own mark in the payload.
  static func messageID(in payload: [UInt8]) -> String? {
    guard let document = try? JSONDocument(payload) else { return nil }
    var node = document.value("request", of: document.root)
    if node == nil, let message = document.value("message", of: document.root), let data = document.value("data", of: message) {
      node = document.value("request", of: data)
    }
    return node.map { document.text($0) }
  }

  /// APNs' badge, or FCM's number for Android.
  static func badge(in payload: [UInt8]) -> Int64? {
    guard let document = try? JSONDocument(payload) else { return nil }
    func value(_ path: String...) -> Int64? {
      var node = document.root
      for name in path {
        guard let next = document.value(name, of: node) else { return nil }
        node = next
      }
      return Int64(document.text(node))
    }
    return value("aps", "badge") ?? value("message", "android", "notification", "notification_count")
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
