import AMQP
import Broker
import Logging
import PushCore
import Reactor
import StatusHTTP
import Wire

/// The state of the whole fleet: its queues, and each worker's own status. It is gathered when somebody asks, at most once a
/// second, over a connection of its own: a question to a missing exchange ends the channel. Confined to the loop's thread.
final class FleetStatus {
  /// Bytes of a worker's answer.
  private static let maximumAnswer = 256 << 10
  private static let mostWorkers = 1_000
  /// Bytes of all answers.
  private static let mostBytes = 32 << 20
  /// Seconds for which a state counts as the present one.
  private static let fresh = 1.0
  /// Seconds after which callers are answered without the broker.
  private static let patience = 4.0

  private let topology: Topology
  private let loop: EventLoop
  private let connection: BrokerConnection
  private var publisher: Publisher?
  private var isStarted = false
  private var callers: [([UInt8]) -> Void] = []
  private var round: UInt64 = 0
  private var isGathering = false
  /// Fires when the callers have waited long enough.
  private var limit: TimerToken?
  /// `ready` is nil if there is no such queue.
  private var queues: [(name: String, ready: Int?, consumers: Int)] = []
  /// The answers of workers, and the number of their shards.
  private var workers: [(json: [UInt8], shards: Int)] = []
  /// The pushes that wait for paused credentials.
  private var waiting: [[UInt8]: Int] = [:]
  private var latest: (json: [UInt8], at: MonotonicTime)?

  init(_ topology: Topology, loop: EventLoop, brokers: [BrokerAddress]) {
    self.topology = topology
    self.loop = loop
    connection = BrokerConnection(
      loop: loop, brokers: brokers, name: "pushfleet gateway, status, \(ThisProcess.name)")
    // Unpredictable, because the number is all that authenticates an answer.
    round = UInt64.random(in: 0..<(1 << 62))
    connection.makeMachine = { [unowned self] settings in
      let publisher = Publisher(settings: settings, window: 100, maximumReply: Self.maximumAnswer, handler: self)
      self.publisher = publisher
      return publisher
    }
  }

  /// The new addresses apply to the next connection.
  func reload(_ brokers: [BrokerAddress]) { connection.brokers = brokers }

  /// - Parameter then: called once, with a JSON object.
  func ask(then: @escaping ([UInt8]) -> Void) {
    if let latest, loop.now.seconds(since: latest.at) < Self.fresh { return then(latest.json) }
    callers.append(then)
    guard callers.count == 1 else { return }
    queues = []
    workers = []
    waiting = [:]
    if !isStarted { connection.start() }
    isStarted = true
    limit = loop.schedule(after: Self.patience) { [weak self] in self?.end(problem: "the broker doesn't answer") }
    gather()
  }

  /// - Parameter then: called once, with the number of pushes that wait for each paused credential.
  func askWaiting(then: @escaping ([[UInt8]: Int]) -> Void) { ask { [unowned self] _ in then(waiting) } }

  func close() {
    connection.stop()
    publisher?.close()
  }

  // MARK: a round

  private func gather() {
    guard let publisher, publisher.isReady, !isGathering, !callers.isEmpty else { return }
    isGathering = true
    round += 1
    count(topology.queues.map(\.name)[...], publisher, round)
  }

  private func count(_ names: ArraySlice<String>, _ publisher: Publisher, _ round: UInt64) {
    guard let name = names.first else { return ask(publisher, round) }
    publisher.perform(.queueInspect(name: name)) { [weak self, weak publisher] answer in
      guard let self, let publisher, round == self.round, isGathering else { return }
      switch answer {
      case .success(.queue(let ready, let consumers)): queues.append((name, ready, consumers))
      case .failure(.notFound): queues.append((name, nil, 0))
      case .success: break
      case .failure(let reason): return end(problem: "queue \(name): \(reason)")
      }
      count(names.dropFirst(), publisher, round)
    }
  }

  private func ask(_ publisher: Publisher, _ round: UInt64) {
    guard publisher.canPublish else { return end(problem: "the broker accepts no messages: a resource alarm") }
    publisher.askWorkers(topology, StatusQuestion.plain, id: Array("\(round)".utf8), tag: 0)
    loop.schedule(after: Publisher.answerTime) { [weak self] in
      if let self, round == self.round, isGathering { end() }
    }
  }

  /// Consuming shards that have not answered; nil if no queue shows the number of shards.
  private var silentShards: Int? {
    let counted = topology.queuesOfOneConsumer
    let consuming = queues.filter { counted.contains($0.name) }.map(\.consumers).max() ?? 0
    return consuming > 0 ? max(0, consuming - workers.reduce(0) { $0 + $1.shards }) : nil
  }

  private func end(problem: String? = nil) {
    if let limit { loop.cancel(limit) }
    limit = nil
    isGathering = false
    round += 1
    let object: JSONObject = [
      "at": Timestamp.text(loop.wallClock), "prefix": topology.prefix, "problem": problem, "silent_shards": silentShards,
      "queues": queues.map { queue -> JSONObject in
        ["queue": queue.name, "ready": queue.ready, "consumers": queue.consumers]
      },
      "workers": JSONRaw(JSONObjectWriter.array(workers.map(\.json))),
    ]
    let json = object.line
    latest = (json, loop.now)
    let callers = callers
    self.callers = []
    for caller in callers { caller(json) }
  }
}

extension FleetStatus: PublisherHandler {
  func ready(_ publisher: Publisher) {
    connection.established(at: loop.now)
    // The exchange of the question is missing, so the channel was opened again: no worker has started.
    if isGathering { end() } else { gather() }
  }

  func replied(_ publisher: Publisher, _ reply: consuming Delivery) {
    guard isGathering, reply.properties.correlationID == Array("\(round)".utf8), !reply.isTruncated,
      workers.count < Self.mostWorkers, workers.reduce(reply.body.count, { $0 + $1.json.count }) <= Self.mostBytes,
      let answer = try? JSONDocument(reply.body, limits: JSONLimits(bytes: Self.maximumAnswer)),
      answer.kind(answer.root) == .object
    else { return }
    let shards = answer.value("shards", of: answer.root).flatMap { answer.integer($0) } ?? 1
    workers.append((reply.body, Int(min(max(shards, 0), 1 << 20))))
    for row in answer.value("waiting", of: answer.root).map({ Array(answer.elements(of: $0)) }) ?? [] {
      guard let credential = answer.string("credential", of: row), let pushes = answer.value("pushes", of: row),
        let count = answer.integer(pushes)
      else { continue }
      waiting[credential, default: 0] += Int(min(max(count, 0), 1 << 40))
    }
    if silentShards == 0 { end() }
  }

  /// Nobody listens at the exchange.
  func failed(_ tag: Int, _ failure: PublishFailure) { if isGathering, case .returned = failure { end() } }

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    guard publisher === self.publisher else { return }
    self.publisher = nil
    if isGathering { end(problem: "the broker's connection ended: \(reason)") }
    connection.ended(at: loop.now)
  }
}
