import AMQP
import BrokerModel
import Providers
import PushCore
import Simulator
import Wire

/// Records requests and their outcomes as seen from outside: in the broker's queues and in the providers' journals.
final class OutcomeRecorder {
  private unowned let world: World
  /// Requests that the broker has confirmed to the producer.
  private(set) var requests: [String: Request] = [:]
  /// Time of that confirm, in Unix milliseconds.
  private(set) var acceptedAt: [String: Int64] = [:]
  /// Times of answers with status 200, by request and token, in Unix milliseconds.
  private(set) var delivered: [String: [String: [Int64]]] = [:]
  /// The same times by application and provider; below, how often each request was tried with a device.
  private(set) var deliveries: [AppRoute: [Int64]] = [:]
  private(set) var attempts: [String: [String: Int]] = [:]
  private(set) var results: [String: [SimulatedResult]] = [:]
  /// Results sent to the backend's queue, and answers to changes of the registry.
  private(set) var replies: [String: [SimulatedResult?]] = [:]
  private(set) var letters: [String: Letters] = [:]
  /// Tokens that feedback reports as gone, by request; below, tokens that a provider reported as gone.
  private(set) var saidGone: [String: Set<String>] = [:]
  private(set) var foundGone: [String: Set<String>] = [:]
  /// Messages of a later version, which all workers must leave alone.
  private(set) var kept: Set<String> = []
  private(set) var changes = RegistryLedger()
  private(set) var acknowledgements = AcknowledgementLedger()
  /// The badges in each request's pushes, by device.
  private(set) var badges: [String: [String: Set<Int64>]] = [:]
  private(set) var copies = Copies()
  /// Unconfirmed results by publication number. A result without a confirm is published again.
  private var unconfirmedResults: [Int: (request: String, at: MonotonicTime)] = [:]
  private var heldRequests = HeldRequests()
  private var consequences = Consequences()
  /// The process that made a client's connection.
  var participant: (Client) -> String = { $0.name }
  /// True if a copy may be published only shortly after its request was delivered. False if the network may delay a copy, or a
  /// worker may publish one again.
  var judgesCopies = false
  /// When the broker last read data that had waited during an alarm.
  var lastAlarmEnd: () -> MonotonicTime = { MonotonicTime(nanoseconds: 0) }
  /// Confirmed retries, dead letters and results of each request.
  private var confirmed: [String: Int] = [:]
  private var providers: [SimulatedProvider] = []
  private(set) var pushes = 0
  /// Requests that the broker dead-lettered after too many returns. No outcome is expected.
  private(set) var givenUp: Set<String> = []
  /// Issue times of each key's provider tokens, in Unix seconds.
  private(set) var providerTokens: [String: Set<Int64>] = [:]

  /// Seconds. A publisher waits a little longer for a confirm; after that its connection is given up.
  private static let confirmTimeout = 29.0

  init(_ world: World) { self.world = world }

  func unconfirmedResults(of id: String) -> Int { unconfirmedResults.values.count { $0.request == id } }

  func follow(_ provider: SimulatedProvider) { providers.append(provider) }

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

  /// A worker's process has ended with its connections.
  func ended(_ worker: String, connections: some Sequence<Int>) {
    consequences.ended(worker, connections: connections)
    heldRequests.ended(worker)
  }

  private func noteConsequence(_ message: Message, _ client: Client, isConfirmed: Bool) {
    guard client.name != "producer" else { return }
    let isReply = message.routingKey.elementsEqual(Producer.replies.utf8)
    if isReply, mayDropReplies { return }
    guard let id = isReply ? message.correlationID : message.id else { return }
    if isConfirmed {
      consequences.confirmed(message, id, to: participant(client))
    } else {
      consequences.published(message, id, by: participant(client), on: client.number)
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
        // A page of a broadcast is sent by the worker that opens its first copy.
        let isPage = queues.contains { $0.hasPrefix("push.fanout.") }
        if client.name != "producer", !isPage { checkCopy(of: id, client) }
      }
    case .deadLettered(let message, let queue, let reason, let targets):
      guard let id = message.id else { return }
      if Self.isWork(queue) {
        copies.left(id)
        heldRequests.left(message, queue)
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
      heldRequests.left(message, queue)
      checkAcknowledgement(of: id, queue, client)
    case .dropped(let message, let queue, let reason):
      if queue == Self.registryQueue { changes.dropped(message.messageID) }
      if queue == Self.acknowledgementQueue { acknowledgements.dropped(message.messageID ?? "") }
      guard let id = message.id, Self.isWork(queue) else { return }
      copies.left(id)
      heldRequests.left(message, queue)
      if case .crash = reason { return }
      world.fail("\(id) was dropped from \(queue): \(reason)")
    case .requeued(let message, let queue, _):
      guard Self.isWork(queue), let id = message.id else { return }
      copies.cameBack(id)
      heldRequests.cameBack(message, queue, at: world.now)
    case .delivered(let message, Self.registryQueue, _, let client):
      world.note("connection \(client.number) is given \(message.messageID ?? "a change")")
    case .delivered(let message, let queue, _, let client):
      if Self.isWork(queue), let id = message.id { heldRequests.delivered(message, id, queue, to: participant(client)) }
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

  /// True for the queues of requests and their copies.
  static func isWork(_ queue: String) -> Bool {
    queue.hasPrefix("push.send.") || queue.hasPrefix("push.fanout.") || queue.hasPrefix("push.retry.")
      || queue.hasPrefix("push.hold.") || queue == "push.quarantine"
  }

  /// True for the queues that workers consume.
  static func isTaken(_ queue: String) -> Bool {
    isWork(queue) || queue == registryQueue || queue == acknowledgementQueue
  }

  /// At an acknowledgement, the request must still be in a queue, or an outcome must be confirmed. If it was the worker's only
  /// copy, everything the worker published of it must be confirmed. A worker that lost a copy before may go on with another one
  /// while earlier publications are unconfirmed.
  private func checkAcknowledgement(of id: String, _ queue: String, _ client: Client) {
    let worker = participant(client)
    let unconfirmed = consequences.unconfirmed(of: id, by: worker)
    if unconfirmed > 0, heldRequests.hasSettledAll(id, worker) {
      world.fail("\(worker) acknowledged \(id) of \(queue), with \(unconfirmed) consequences not confirmed")
    }
    guard copies.waiting(of: id) <= 0, confirmed[id, default: 0] == 0 else { return }
    world.fail("\(client.name) acknowledged \(id) of \(queue) with no consequence confirmed")
  }

  /// The broker has redelivered a lost request to another worker. A copy that the old worker publishes later is one too many.
  private func checkCopy(of id: String, _ client: Client) {
    let worker = participant(client)
    guard judgesCopies, world.now > lastAlarmEnd(), let lost = heldRequests.lost(id, by: worker) else { return }
    let seconds = world.now.seconds(since: lost)
    if seconds > Self.longestWay { world.fail("\(worker) publishes a copy of \(id), which it lost \(seconds) s ago") }
  }

  /// Seconds until a worker knows what the broker did and until its earlier publications have arrived.
  private static let longestWay = 1.0

  // MARK: the providers' side

  /// Reads the providers' journals. Called once, at the end.
  func readJournals() {
    for provider in providers {
      for entry in provider.journal.entries { read(entry, for: provider.device(of: entry)) }
      for violation in provider.journal.violations { world.fail("\(provider.name): \(violation)") }
    }
  }

  /// - Parameter token: the device's.
  private func read(_ entry: JournalEntry, for token: String) {
    for value in [Int(entry.time), entry.connection, Int(entry.stream), entry.payload.count, entry.status ?? 0] {
      world.mix(value)
    }
    guard !entry.token.isEmpty else { return }
    guard ![ProviderProbe.apnsDevice, ProviderProbe.fcmDevice].contains(entry.tokenText) else { return readCanary(entry) }
    // A push that probes a credential names no device of the workload.
    guard ![CredentialProbe.apnsDevice, CredentialProbe.fcmDevice].contains(entry.tokenText) else { return }
    guard let messageID = Self.messageID(in: entry.payload) else {
      return world.fail("\(token) was sent what no request of the workload says")
    }
    let app = Workload.app(of: token)
    let id = "\(Scenario.app(app))/\(messageID)"
    pushes += 1
    for violation in entry.violations { world.fail("\(id): \(violation)") }
    let request = requests[id]
    if request?.names(token) != true {
      world.fail("\(id) was sent to \(token), and \(request == nil ? "nobody published it" : "doesn't name it")")
    }
    if let authorization = entry.authorization {
      let key = String(decoding: authorization.keyID, as: UTF8.self)
      providerTokens[key, default: []].insert(authorization.issuedAt)
      if let request, key != Scenario.keyID(app: app, sender: request.sender) { world.fail("\(id) was sent by key \(key)") }
    }
    if let request, entry.time > request.deadline + tolerance { world.fail("\(id) was sent after its deadline") }
    attempts[id, default: [:]][token, default: 0] += 1
    if let badge = Self.badge(in: entry.payload) { badges[id, default: [:]][token, default: []].insert(badge) }
    if entry.isGone { foundGone[id, default: []].insert(token) }
    guard entry.isAccepted else { return }
    deliveries[AppRoute(app: app, platform: Workload.platform(of: token)), default: []].append(entry.time)
    delivered[id, default: [:]][token, default: []].append(entry.time)
  }

  /// A canary push, which asks a silent provider for an answer, must not be delivered.
  private func readCanary(_ entry: JournalEntry) {
    if entry.status == 200 { world.fail("a canary was delivered") }
  }

  /// Milliseconds between the clock readings of worker and provider. Longer if clocks differ, or a connection stalls with a
  /// push that was sent in time.
  var tolerance: Int64 = 1_000
  var mayDropReplies = false
  /// Number of requests with a known latest send time, and of those delayed by a fault.
  var timed = 0
  var timedAfterFault = 0

  /// The request's id, which the workload puts in the payload.
  static func messageID(in payload: [UInt8]) -> String? {
    guard let document = try? JSONDocument(payload) else { return nil }
    let message = document.value("message", of: document.root) ?? document.root
    let data = document.value("data", of: message) ?? document.root
    return document.value("request", of: data).map { document.text($0) }
  }

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
    return value("aps", "badge") ?? value("message", "android", "notification", "notification_count") ?? value("app_badge")
  }

  /// Number of repeated pushes to a device.
  var duplicates: Int { delivered.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + max(0, $1.count - 1) } } }
}

extension Message {
  /// The workload's id of a request: application and message id.
  var id: String? {
    guard let app = properties.appID, let messageID else { return nil }
    return String(decoding: app, as: UTF8.self) + "/" + messageID
  }

  var messageID: String? { properties.messageID.map { String(decoding: $0, as: UTF8.self) } }
  var correlationID: String? { properties.correlationID.map { String(decoding: $0, as: UTF8.self) } }
}
