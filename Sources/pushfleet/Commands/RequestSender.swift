import AMQP
import Broker
import Foundation
import Reactor
import Settings
import Wire

/// Publishes requests as the window allows, and again what a lost connection left unconfirmed.
final class RequestSender: PublisherClient {
  private let requests: RequestFiles
  private let exchange: [UInt8]
  private let lane: [UInt8]
  private let queue: String
  private let app: [UInt8]?
  /// Whether the application takes requests of named producers only.
  private let isSigned: Bool
  private var user: [UInt8]?
  private var outstanding: [Int: RequestFiles.Request] = [:]
  private var again: [Int] = []
  private var next = 0
  private let report: SendReport
  /// Published, and its outcome has not come.
  private var unanswered: [[UInt8]: SendReport.Awaited] = [:]
  /// Seconds without progress after which it gives up.
  private let timeout: Double
  private var progressAt = MonotonicTime(nanoseconds: 0)
  private var bar: ProgressBar
  private var nextReport = MonotonicTime(nanoseconds: 0)
  /// Since when the queue has taken nothing; nil while it does.
  private var fullSince: MonotonicTime?
  /// Nothing is published while what is on its way is waited for, and then another connection.
  private var isRenewing = false
  /// Seconds between two words about a queue that goes on being full.
  private static let reportPause = 10.0

  init(
    _ configuration: Configuration, _ requests: RequestFiles, app: String?, lane: String, timeout: Double, report: SendReport
  ) throws {
    self.requests = requests
    self.timeout = timeout
    self.report = report
    let topology = configuration.topology
    exchange = Array(topology.sendExchange.utf8)
    queue = topology.sendQueue(lane)
    self.lane = Array(lane.utf8)
    self.app = app.map { Array($0.utf8) }
    isSigned = configuration.apps.contains { $0.producers != nil && (app == nil || $0.id == app) }
    bar = ProgressBar("sending", total: requests.totalBytes)
    try super.init(
      configuration, connectTimeout: min(timeout, BrokerClient.connectTimeout),
      maximumReply: report.prints == .outcomes ? Self.longestOutcome : nil
    ) { ConnectionSettings(broker: $0, name: "pushfleet send") }
    requests.complain = { [unowned self] in bar.interrupt($0) }
  }

  override func dials(_ broker: BrokerURI) { user = isSigned ? Array(broker.user.utf8) : nil }

  /// Looked for first: what no queue takes, the broker confirms, because it goes to the dead letters.
  override func ready(_ publisher: Publisher) {
    if !isUp {
      progressAt = loop.now
      watch()
    }
    up()
    publisher.perform(.queueInspect(name: queue)) { [weak self, weak publisher] answer in
      guard let self, let publisher, publisher.isReady else { return }
      if case .failure(.notFound(let what)) = answer { return missing(what) }
      pump(publisher)
    }
  }

  private func missing(_ what: String) { fail(.unavailable, "\(what); `pushfleet topology` declares what is missing") }

  private func pump(_ publisher: Publisher) {
    while publisher.canPublish, !isRenewing, unanswered.count < Self.mostUnanswered {
      if let tag = again.popLast(), let request = outstanding[tag] {
        publish(request, tag, on: publisher)
      } else if let request = requests.next() {
        outstanding[next] = request
        publish(request, next, on: publisher)
        next += 1
      } else {
        waitForInput()
        break
      }
    }
    self.publisher = publisher
    bar.update(requests.bytesRead)
    if outstanding.isEmpty, requests.isAtEnd, unanswered.isEmpty {
      bar.clear()
      publisher.close()
    }
  }

  private var inputWatch: InputWatch?

  /// Standard input may have nothing more for a while.
  private func waitForInput() {
    guard inputWatch == nil, let input = requests.awaited else { return }
    do {
      inputWatch = try InputWatch(loop: loop, input) { [weak self] in
        guard let self else { return }
        inputWatch = nil
        progressAt = loop.now
        if let publisher { pump(publisher) }
      }
    } catch {
      fail(.badInput, "standard input can't be waited for: \(error)")
    }
  }

  private func publish(_ request: RequestFiles.Request, _ tag: Int, on publisher: Publisher) {
    var properties = BasicProperties()
    properties.contentType = Array("application/json".utf8)
    properties.deliveryMode = 2
    properties.messageID = request.id
    properties.appID = app
    properties.userID = user
    if report.prints == .outcomes {
      properties.replyTo = Publisher.replyTo
      properties.correlationID = request.id
      unanswered[request.id] = report.awaited(request)
    }
    properties.timestamp = UInt64(Date().timeIntervalSince1970)
    publisher.publish(exchange: exchange, routingKey: lane, properties: properties, body: request.body, tag: tag)
  }

  override func confirmed(_ tag: Int) {
    if let request = outstanding.removeValue(forKey: tag) {
      if report.prints == .ids { bar.clear() }
      report.confirmed(request)
    }
    progressAt = loop.now
    fullSince = nil
    renewWhenSettled()
    if let publisher { pump(publisher) }
  }

  override func failed(_ tag: Int, _ failure: PublishFailure) {
    // Nobody is asked: it ends in a second.
    if tag == Self.questionTag { return }
    switch failure {
    case .returned: fail(.unavailable, "there is no queue for the requests; `pushfleet topology` declares it")
    case .channelClosed(.notFound(let what)): missing(what)
    case .channelClosed(let end) where end.isRefusal: fail(.unavailable, "\(end)")
    case .unencodable: fail(.badInput, "--app is too long")
    case .nacked:
      loop.schedule(after: 1) { [weak self] in
        guard let self else { return }
        again.append(tag)
        if let publisher { pump(publisher) }
      }
      reportRefusals()
      renewIfLong()
    case .timedOut, .connectionLost, .channelClosed: again.append(tag)
    }
  }

  /// Seconds of refusals until another connection: the channel that has met a full queue may go on refusing by itself when the queue
  /// has room again.
  private static let fullTimeout = 10.0

  private func renewIfLong() {
    fullSince = fullSince ?? loop.now
    if let fullSince, loop.now.seconds(since: fullSince) >= Self.fullTimeout { isRenewing = true }
    renewWhenSettled()
  }

  private func renewWhenSettled() {
    if isRenewing, let publisher, publisher.unconfirmed == 0 { publisher.close() }
  }

  /// Nobody waits without knowing for what.
  private func reportRefusals() {
    guard loop.now >= nextReport else { return }
    nextReport = loop.now.advanced(bySeconds: Self.reportPause)
    bar.interrupt("the queue \(queue) is full: \(report.sent) sent, the others wait until it has room (Ctrl-C ends)")
  }

  override func interrupt() {
    bar.clear()
    fail(.interrupted, "interrupted: \(account)")
  }

  /// How far it came, and how to go on: requests are published in order and confirmed in nearly that order.
  private var account: String {
    var words = "\(report.sent) sent"
    let first = outstanding.min { $0.key < $1.key }?.value.place
    if first != nil { words += ", \(outstanding.count) published and not confirmed" }
    if requests.isAtEnd, first == nil { return words }
    guard let place = first ?? requests.place else { return words + "; nothing else has been published" }
    return words + "; to go on, send from \(place) on"
  }

  // MARK: outcomes

  /// Outcomes waited for at once.
  private static let mostUnanswered = 10_000
  /// Bytes of an outcome that are read.
  private static let longestOutcome = 4 << 20

  override func replied(_ publisher: Publisher, _ reply: consuming Delivery) {
    if reply.properties.correlationID == Self.question {
      if let answer = WorkerAnswer(reply.body, now: Date().timeIntervalSince1970) { workers.append(answer) }
      return
    }
    guard let id = reply.properties.correlationID, let awaited = unanswered.removeValue(forKey: id) else { return }
    progressAt = loop.now
    bar.clear()
    report.outcome(reply.body, id, awaited)
    pump(publisher)
  }

  /// What is not known is said to be so.
  func reportUnanswered() {
    for (id, awaited) in unanswered.sorted(by: { $0.value.place < $1.value.place }) { report.unknown(id, awaited.place) }
    unanswered.removeAll()
  }

  /// Ends the command when nothing has moved for long.
  private func watch() {
    loop.schedule(at: progressAt.advanced(bySeconds: timeout)) { [weak self] in
      guard let self else { return }
      if inputWatch != nil, outstanding.isEmpty, unanswered.isEmpty { progressAt = loop.now }
      guard loop.now.seconds(since: progressAt) >= timeout else { return watch() }
      bar.clear()
      if outstanding.isEmpty, !unanswered.isEmpty, let publisher, publisher.canPublish { return askWorkers(publisher) }
      fail(
        .unavailable,
        outstanding.isEmpty && !unanswered.isEmpty
          ? missingOutcomes : "nothing was taken for \(Int(timeout)) s: \(account)")
    }
  }

  // MARK: why outcomes don't come

  private static let question = Array("status".utf8)
  /// Of the question; requests count from 0.
  private static let questionTag = -1
  private var workers: [WorkerAnswer] = []

  private func askWorkers(_ publisher: Publisher) {
    publisher.askWorkers(configuration.topology, StatusQuestion.plain, id: Self.question, tag: Self.questionTag)
    loop.schedule(after: Publisher.answerTime) { [weak self] in
      guard let self else { return }
      fail(.unavailable, "\(missingOutcomes): \(whereTheyWait)")
    }
  }

  private var missingOutcomes: String { "\(unanswered.count) outcomes did not come within \(Int(timeout)) s" }

  private var whereTheyWait: String {
    guard !workers.isEmpty else { return "is a worker running?" }
    let held = Dictionary(workers.flatMap(\.holds).map { ($0.app, $0.ready) }, uniquingKeysWith: max)
      .filter { $0.value > 0 && (app == nil || app == Array($0.key.utf8)) }.keys.sorted()
    let asked = app.map { String(decoding: $0, as: UTF8.self) + " " } ?? ""
    let pools = FleetPools(workers).rows.filter { $0.isInTrouble > 0 && $0.name.hasPrefix(asked) }
    guard held.count + pools.count > 0 else { return "workers run; `pushfleet trace ID` says how far a request has come" }
    func words(_ pool: FleetPools.Row) -> String {
      let why = [pool.reason, pool.remedy].filter { !$0.isEmpty }.joined(separator: ": ")
      return (pool.since.isEmpty ? "" : " since \(pool.since)") + (why.isEmpty ? "" : ": \(why)")
    }
    var places = held.prefix(5).map { app in
      let pool = pools.first { $0.name.hasPrefix(app + " ") }
      return configuration.topology.holdQueue(app) + (pool.map(words) ?? "")
    }
    // While every provider is in trouble, workers leave requests in the lanes.
    if held.isEmpty { places = pools.prefix(5).map { "the lanes for \($0.name)\(words($0))" } }
    return "requests wait in \(places.joined(separator: "; "))"
  }

  override func blocked(_ publisher: Publisher, reason: String) {
    bar.interrupt("the broker takes nothing at present (\(reason)); waiting")
  }

  override func unblocked(_ publisher: Publisher) { pump(publisher) }

  /// Outcomes of what another connection has published go nowhere.
  override func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    self.publisher = nil
    let again = Set(outstanding.values.map(\.id))
    for (id, awaited) in unanswered where !again.contains(id) {
      unanswered[id] = nil
      report.unknown(id, awaited.place)
    }
    guard isRenewing else { return reason == .closedHere ? finish() : lost(reason) }
    isRenewing = false
    fullSince = nil
    if reason == .closedHere { _ = connection.ended(at: loop.now) } else { lost(reason) }
  }
}
