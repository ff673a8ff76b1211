import AMQP
import Foundation
import Reactor
import Wire
import Worker

enum SendCommand: Command {
  static let name = "send"
  static let summary = "publish send requests, with confirms"
  static let help = """
    Usage: pushfleet send --config FILE [--app APP] [--lane high|normal] FILE...

    Publishes each FILE's requests: one JSON object, or one per line (NDJSON); - reads standard input. Every request is
    confirmed by the broker before the command ends. What is no JSON object is reported with its line and not sent (exit
    status 65); the others are.

      --config FILE   the configuration (or PUSHFLEET_CONFIG)
      --app APP       the application sent to; may be left out when only one is configured
      --lane LANE     high or normal (the default)
      --json          print one JSON object when done

    Example: pushfleet send --config pushfleet.json5 --app com.example.app --lane high request.json
    """

  static func run(_ arguments: inout [String]) throws {
    let options = try Options(arguments, values: ["config", "app", "lane"], flags: ["json"])
    let lane = options["lane"] ?? "normal"
    guard lane == "high" || lane == "normal" else { throw CommandFailure(.usage, "--lane must be high or normal") }
    guard !options.operands.isEmpty else { throw CommandFailure(.usage, "name at least one file of requests, or -") }
    let configuration = try options.configuration()
    if let app = options["app"], !configuration.apps.contains(where: { $0.id == app }) {
      throw CommandFailure(.usage, "--app: the configuration has no application \(Shown.value(app))")
    }
    guard options["app"] != nil || configuration.apps.count == 1 else {
      throw CommandFailure(.usage, "--app must name one of \(configuration.apps.map(\.id).joined(separator: ", "))")
    }
    let requests = try RequestFiles(options.operands)
    let client = try RequestSender(configuration, requests, app: options["app"], lane: lane)
    let signals = try Signals(loop: client.loop, [2, 15]) { _ in client.interrupted() }
    defer { signals.close() }
    try client.run()
    if options.has("json") {
      Terminal.print(#"{"sent":\#(client.confirmed),"refused":\#(requests.refused)}"#)
    } else {
      Terminal.say("pushfleet: \(client.confirmed) sent\(requests.refused > 0 ? ", \(requests.refused) refused" : "")")
    }
    if requests.refused > 0 { throw CommandFailure(.badInput, "\(requests.refused) of the requests are not JSON objects") }
  }
}

/// Publishes requests as the window allows, and again what a lost connection left unconfirmed.
private final class RequestSender: BrokerClient, PublisherHandler {
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
  private(set) var confirmed = 0
  private var bar: ProgressBar
  private var nextReport = MonotonicTime(nanoseconds: 0)
  /// Since when the queue has taken nothing; nil while it does.
  private var fullSince: MonotonicTime?
  /// Nothing is published while what is on its way is waited for, and then another connection.
  private var isRenewing = false
  /// Seconds between two words about a queue that goes on being full.
  private static let reportPause = 10.0

  init(_ configuration: Configuration, _ requests: RequestFiles, app: String?, lane: String) throws {
    self.requests = requests
    let topology = configuration.topology
    exchange = Array(topology.sendExchange.utf8)
    queue = topology.sendQueue(lane)
    self.lane = Array(lane.utf8)
    self.app = app.map { Array($0.utf8) }
    isSigned = configuration.apps.contains { $0.producers != nil && (app == nil || $0.id == app) }
    bar = ProgressBar("sending", total: requests.totalBytes)
    try super.init(configuration)
    connection.makeMachine = { [unowned self] broker in
      user = isSigned ? Array(broker.user.utf8) : nil
      return Publisher(settings: ConnectionSettings(broker: broker, name: "pushfleet send"), handler: self)
    }
  }

  /// Looked for first: what no queue takes, the broker confirms, because it goes to the dead letters.
  func ready(_ publisher: Publisher) {
    up()
    publisher.perform(.queueInspect(name: queue)) { [weak self, weak publisher] answer in
      guard let self, let publisher, publisher.isReady else { return }
      if case .failure(.notFound(let what)) = answer { return missing(what) }
      pump(publisher)
    }
  }

  private func missing(_ what: String) { fail(.unavailable, "\(what); `pushfleet topology` declares what is missing") }

  private func pump(_ publisher: Publisher) {
    while publisher.canPublish, !isRenewing {
      if let tag = again.popLast(), let request = outstanding[tag] {
        publish(request, tag, on: publisher)
      } else if let request = requests.next() {
        outstanding[next] = request
        publish(request, next, on: publisher)
        next += 1
      } else {
        break
      }
    }
    self.publisher = publisher
    bar.update(requests.bytesRead)
    if outstanding.isEmpty, requests.isAtEnd {
      bar.finish()
      publisher.close()
    }
  }

  private weak var publisher: Publisher?

  private func publish(_ request: RequestFiles.Request, _ tag: Int, on publisher: Publisher) {
    var properties = BasicProperties()
    properties.contentType = Array("application/json".utf8)
    properties.deliveryMode = 2
    properties.messageID = request.id
    properties.appID = app
    properties.userID = user
    properties.timestamp = UInt64(Date().timeIntervalSince1970)
    publisher.publish(exchange: exchange, routingKey: lane, properties: properties, body: request.body, tag: tag)
  }

  func confirmed(_ tag: Int) {
    outstanding[tag] = nil
    confirmed += 1
    fullSince = nil
    renewWhenSettled()
    if let publisher { pump(publisher) }
  }

  func failed(_ tag: Int, _ failure: PublishFailure) {
    switch failure {
    case .returned: fail(.unavailable, "there is no queue for the requests; `pushfleet topology` declares it")
    case .channelClosed(.notFound(let what)): missing(what)
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
    bar.interrupt("the queue \(queue) is full: \(confirmed) sent, the others wait until it has room (Ctrl-C ends)")
  }

  /// Says how far it came: requests are published in order and confirmed in nearly that order.
  func interrupted() {
    bar.finish()
    var words = "interrupted: \(confirmed) sent"
    if let first = outstanding.min(by: { $0.key < $1.key }) {
      words += ", \(outstanding.count) published and not confirmed; the first of these is \(first.value.place)"
    }
    fail(.interrupted, words + "; what follows has not been published")
  }

  func blocked(_ publisher: Publisher, reason: String) {
    bar.interrupt("the broker takes nothing at present (\(reason)); waiting")
  }

  func unblocked(_ publisher: Publisher) { pump(publisher) }

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    self.publisher = nil
    guard isRenewing else { return reason == .closedHere ? finish() : lost(reason) }
    isRenewing = false
    fullSince = nil
    if reason == .closedHere { _ = connection.ended(at: loop.now) } else { lost(reason) }
  }
}
