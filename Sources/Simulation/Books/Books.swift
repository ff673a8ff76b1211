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
  /// Answers of 200, by request and token.
  private(set) var delivered: [String: [String: Int]] = [:]
  /// Bodies of results, by request.
  private(set) var results: [String: [SimulatedResult]] = [:]
  /// Dead letters of each request.
  private(set) var letters: [String: Int] = [:]
  /// Copies of a request in queues from which workers take it, in hand ones included.
  private var copies: [String: Int] = [:]
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
    world.note("accepted \(request.id)")
  }

  // MARK: the broker's side

  func observe(_ event: BrokerEvent) {
    switch event {
    case .published(let message, let queues, _):
      guard let id = message.id else { return }
      for queue in queues { stored(message, id, queue) }
    case .deadLettered(let message, let queue, let reason, let targets):
      guard let id = message.id else { return }
      if Self.isWork(queue) { copies[id, default: 0] -= 1 }
      for queue in targets { stored(message, id, queue) }
      guard targets.contains("push.dead") else { return }
      world.note("\(id) died in \(queue): \(reason.rawValue)")
      if reason != .expired { givenUp.insert(id) }
    case .confirmed(let message, let client):
      if client.name != "producer", let id = message.id { confirmed[id, default: 0] += 1 }
    case .acknowledged(let message, let queue, let client):
      guard let id = message.id, Self.isWork(queue) else { return }
      copies[id, default: 0] -= 1
      checkAcknowledgement(of: id, queue, client)
    case .dropped(let message, let queue, let reason):
      guard let id = message.id, Self.isWork(queue) else { return }
      copies[id, default: 0] -= 1
      if case .crash = reason { return }
      world.fail("\(id) was dropped from \(queue): \(reason)")
    case .delivered, .requeued, .refused, .returned: return
    }
  }

  private func stored(_ message: Message, _ id: String, _ queue: String) {
    switch queue {
    case "push.results":
      if let result = SimulatedResult(message.body) {
        results[id, default: []].append(result)
      } else {
        world.fail("a result that can't be read")
      }
    case "push.dead": letters[id, default: 0] += 1
    case _ where Self.isWork(queue): copies[id, default: 0] += 1
    default: return
    }
  }

  /// Where requests and their copies wait for workers.
  static func isWork(_ queue: String) -> Bool {
    queue.hasPrefix("push.send.") || queue.hasPrefix("push.fanout.") || queue.hasPrefix("push.retry.")
      || queue == "push.quarantine"
  }

  /// Something of the request is still in a queue, or an outcome of it is safe.
  private func checkAcknowledgement(of id: String, _ queue: String, _ client: Client) {
    guard copies[id, default: 0] <= 0, confirmed[id, default: 0] == 0 else { return }
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
    let id = "\(Scenario.app(FleetSimulation.app(of: entry.tokenText)))/\(messageID)"
    if let authorization = entry.authorization {
      providerTokens[String(decoding: authorization.keyID, as: UTF8.self), default: []].insert(authorization.issuedAt)
    }
    pushes += 1
    for violation in entry.violations { world.fail("\(id): \(violation)") }
    if let request = requests[id], entry.time > request.deadline + tolerance {
      world.fail("\(id) was sent after its deadline")
    }
    guard entry.status == 200 else { return }
    delivered[id, default: [:]][entry.tokenText, default: 0] += 1
  }

  /// Milliseconds between a worker's look at the clock and the provider's, clocks that differ included. Longer where a connection stalls with
  /// what was sent in time.
  var tolerance: Int64 = 6_000

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
  var duplicates: Int { delivered.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + max(0, $1 - 1) } } }
}

extension Message {
  /// Of the workload: application and message id.
  var id: String? {
    guard let app = properties.appID, let id = properties.messageID else { return nil }
    return String(decoding: app, as: UTF8.self) + "/" + String(decoding: id, as: UTF8.self)
  }
}
