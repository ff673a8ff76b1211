import AMQP
import Broker
import Reactor
import Settings
import Wire

/// Publishes requests within the confirm window, and republishes those that a lost connection left unconfirmed.
final class RequestSender: PublisherClient {
  private let requests: RequestFiles
  private let exchange: [UInt8]
  private let lane: [UInt8]
  private let queue: String
  private let app: [UInt8]?
  /// True if the application accepts requests only from named producers.
  private let isSigned: Bool
  private var user: [UInt8]?
  private var outstanding: [Int: RequestFiles.Request] = [:]
  private var again: [Int] = []
  private var next = 0
  private let report: SendReport
  /// Requests that are published and wait for their outcomes.
  private var unanswered: [[UInt8]: SendReport.Awaited] = [:]
  /// Seconds without progress until the command gives up.
  private let timeout: Double
  private var progressAt = MonotonicTime(nanoseconds: 0)
  private var bar: ProgressBar
  private var nextReport = MonotonicTime(nanoseconds: 0)
  /// Start of the queue's refusals; nil while it accepts messages.
  private var fullSince: MonotonicTime?
  /// True while publishing pauses until all confirms are in and a new connection replaces this one.
  private var isRenewing = false
  /// Seconds between two messages about a full queue.
  private static let reportPause = 10.0

  init(
    _ configuration: Configuration, _ requests: RequestFiles, app: String?, lane: String, timeout: Double, report: SendReport
  ) throws {
    self.requests = requests
    self.timeout = timeout
    self.report = report
    let topology = configuration.topology
    exchange = Array(topology.sendExchange.utf8)
    queue = topology.name("\(Topology.send).\(lane)")
    self.lane = Array(lane.utf8)
    self.app = app.map { Array($0.utf8) }
    isSigned = configuration.apps.contains { $0.producers != nil && (app == nil || $0.id == app) }
    bar = ProgressBar("sending", total: requests.totalBytes)
    try super.init(
      configuration, name: "pushfleet send", connectTimeout: min(timeout, BrokerClient.connectTimeout),
      maximumReply: report.prints == .outcomes ? Self.longestOutcome : nil)
    requests.complain = { [unowned self] in bar.interrupt($0) }
  }

  /// The command ends after ``timeout`` without progress.
  override var outlivesBroker: Bool { true }

  override func dials(_ broker: BrokerURI) { user = isSigned ? Array(broker.user.utf8) : nil }

  /// Checks the queue first: the broker would confirm unroutable messages too, because they go to the dead letters.
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

  private var inputWatch: ForeignDescriptor?

  private func waitForInput() {
    guard inputWatch == nil, let input = requests.awaited else { return }
    do {
      inputWatch = try ForeignDescriptor(input.raw, loop: loop) { [weak self] in
        guard let self else { return }
        inputWatch?.close()
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
    properties.timestamp = UInt64(loop.wallClock / 1_000)
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
    // An unanswered question needs no handling: it ends after a second.
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

  /// Seconds of refusals until the connection is renewed: a channel may keep refusing when the queue has room again.
  private static let fullTimeout = 10.0

  private func renewIfLong() {
    fullSince = fullSince ?? loop.now
    if let fullSince, loop.now.seconds(since: fullSince) >= Self.fullTimeout { isRenewing = true }
    renewWhenSettled()
  }

  private func renewWhenSettled() {
    if isRenewing, let publisher, publisher.unconfirmed == 0 { publisher.close() }
  }

  private func reportRefusals() {
    guard loop.now >= nextReport else { return }
    nextReport = loop.now.advanced(bySeconds: Self.reportPause)
    bar.interrupt("the queue \(queue) is full: \(report.sent) sent, the others wait until it has room (Ctrl-C ends)")
  }

  override func interrupt() {
    bar.clear()
    fail(.interrupted, "interrupted: \(account)")
  }

  /// Progress and how to continue. Requests are published in order and confirmed in nearly that order.
  private var account: String {
    var words = "\(report.sent) sent"
    let first = outstanding.min { $0.key < $1.key }?.value.place
    if first != nil { words += ", \(outstanding.count) published and not confirmed" }
    if requests.isAtEnd, first == nil { return words }
    guard let place = first ?? requests.place else { return words + "; nothing else has been published" }
    return words + "; to go on, send from \(place) on"
  }

  // MARK: outcomes

  private static let mostUnanswered = 10_000
  /// Bytes of an outcome to read.
  private static let longestOutcome = 4 << 20

  override func replied(_ publisher: Publisher, _ reply: consuming Delivery) {
    if reply.properties.correlationID == Self.question {
      if let answer = WorkerAnswer(reply.body, now: Double(loop.wallClock) / 1_000) { workers.append(answer) }
      return
    }
    guard let id = reply.properties.correlationID, let awaited = unanswered.removeValue(forKey: id) else { return }
    progressAt = loop.now
    bar.clear()
    report.outcome(reply.body, id, awaited)
    pump(publisher)
  }

  func reportUnanswered() {
    for (id, awaited) in unanswered.sorted(by: { $0.value.place < $1.value.place }) { report.unknown(id, awaited.place) }
    unanswered.removeAll()
  }

  private func watch() {
    loop.time.schedule(at: progressAt.advanced(bySeconds: timeout)) { [weak self] in
      guard let self else { return }
      if inputWatch != nil, outstanding.isEmpty, unanswered.isEmpty { progressAt = loop.now }
      guard loop.now.seconds(since: progressAt) >= timeout else { return watch() }
      bar.clear()
      if outstanding.isEmpty, !unanswered.isEmpty, let publisher, publisher.canPublish { return askWorkers(publisher) }
      fail(
        .unavailable,
        outstanding.isEmpty && !unanswered.isEmpty
          ? missingOutcomes : "the broker confirmed nothing for \(Int(timeout)) s: \(account)")
    }
  }

  // MARK: missing outcomes

  private static let question = Array("status".utf8)
  /// The tag of the question; requests count from 0.
  private static let questionTag = -1
  private var workers: [WorkerAnswer] = []

  private func askWorkers(_ publisher: Publisher) {
    publisher.askWorkers(topology, StatusQuestion.plain, id: Self.question, tag: Self.questionTag)
    loop.schedule(after: Publisher.answerTime) { [weak self] in
      guard let self else { return }
      fail(.unavailable, "\(missingOutcomes): \(whereTheyWait)")
    }
  }

  private var missingOutcomes: String { "\(unanswered.count) of the outcomes did not arrive within \(Int(timeout)) s" }

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
      return topology.holdQueue(app) + (pool.map(words) ?? "")
    }
    if held.isEmpty { places = pools.prefix(5).map { $0.name + words($0) } }
    return "requests wait \(held.isEmpty ? "for" : "in") \(places.joined(separator: "; "))"
  }

  override func blocked(_ publisher: Publisher, reason: String) {
    bar.interrupt("the broker accepts no messages now (\(reason)); waiting")
  }

  override func unblocked(_ publisher: Publisher) { pump(publisher) }

  /// Outcomes of requests from the previous connection are lost, because they go to its reply queue.
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
