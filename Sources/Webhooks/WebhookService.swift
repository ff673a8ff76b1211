import Broker
import DeviceRegistry
import Logging
import PushCore
import Reactor
import Settings
import StatusHTTP

/// A process that posts the events of all webhooks. Signals stop and reload it. Any number of such processes may run side by side.
public final class WebhookService {
  private static let stopSignals: [Int32] = [2, 15]
  /// Seconds between two looks at what operators have paused.
  private static let pause = 1.0
  /// Seconds after which webhooks are served even if the registry hasn't said which ones are paused.
  private static let longestWait = 2.0

  public typealias Reload = () throws(ConfigurationError) -> Configuration

  let configuration: Configuration
  let version: String
  let configurationFile: String?
  let reload: Reload
  var watch: FileWatch
  let loop: EventLoop
  let log: Log
  private(set) var brokers: [BrokerAddress] {
    didSet { for sender in senders + leaving { sender.reload(brokers) } }
  }
  private let registry: RegistryClient?
  var figures: FiguresServer?
  var senders: [WebhookSender] = []
  /// Senders of removed webhooks, which wait for an answer.
  var leaving: [WebhookSender] = []
  /// Webhooks whose receivers wanted no more events, as long as the registry doesn't know it.
  var gone: Set<String> = []
  /// The orders of operators; nil until the registry has named them.
  var modes: [ControlSubject: Control.Mode]?
  var isStopping = false

  /// - Parameters:
  ///   - version: the program's version, for the metrics.
  ///   - file: the configuration file. It is watched for changes, like the files of webhooks.
  ///   - reload: called on SIGHUP and when a watched file has changed.
  /// - Throws: `ConfigurationError` if there is no webhook, or one can't be used.
  public init(_ configuration: Configuration, version: String, file: String?, reload: @escaping Reload) throws {
    self.configuration = configuration
    self.version = version
    configurationFile = file
    self.reload = reload
    watch = FileWatch(configuration.webhookFiles(file))
    loop = try EventLoop()
    log = Log(level: configuration.log, format: configuration.logFormat)
    brokers = try configuration.brokerAddresses()
    registry = try configuration.registryClient(host: loop, log: log)
    if let error = serve(configuration).first { throw error }
    guard !senders.isEmpty else {
      throw ConfigurationError(key: "apps", problem: "has no webhooks: name them in apps.<id>.webhooks")
    }
  }

  /// Runs until a signal ends it and no call is under way.
  public func run() throws {
    let signals = try Signals(loop: loop, Self.stopSignals + [Signals.hangUp]) { [unowned self] signal in
      if signal == Signals.hangUp { return reloadWebhooks(because: "SIGHUP") }
      log.info("stopping", ["signal": Int(signal)])
      stop()
    }
    defer { signals.close() }
    log.info("webhooks start", ["webhooks": senders.count])
    if let endpoint = configuration.metrics { try openFigures(endpoint) }
    defer { figures?.stop() }
    ServiceManager.ofProcess.tell(.ready)
    everySecond()
    loop.schedule(after: Self.longestWait) { [unowned self] in if modes == nil, !isStopping { follow([:]) } }
    loop.run()
    registry?.close()
  }

  private func everySecond() {
    ServiceManager.ofProcess.tell(.alive)
    registry?.lookAfter()
    figures?.lookAround()
    if watch.hasChanged() { reloadWebhooks(because: "a file has changed") }
    look()
    leaving.removeAll(where: \.isIdle)
    loop.schedule(after: Self.pause) { [weak self] in self?.everySecond() }
  }

  private func awaitIdle() {
    leaving.removeAll(where: \.isIdle)
    if leaving.isEmpty, senders.allSatisfy(\.isIdle) { return loop.stop() }
    loop.schedule(after: 0.05) { [weak self] in self?.awaitIdle() }
  }

  /// Without an answer of the registry, nothing changes.
  private func look() {
    guard !isStopping else { return }
    guard let registry else { return follow([:]) }
    registry.call(.read { try $0.controls() }) { [weak self] result in
      guard let self, case .success(let controls) = result else { return }
      follow(Dictionary(controls.map { ($0.subject, $0.mode(at: loop.wallClock)) }) { first, _ in first })
    }
  }

  func follow(_ modes: [ControlSubject: Control.Mode]) {
    self.modes = modes
    for sender in senders {
      sender.want(modes[.webhook(Array(sender.name.utf8))] != .paused && !gone.contains(sender.name))
    }
  }

  /// The receiver doesn't want events any more (410). Pauses the webhook in the registry, and repeats that until it has worked
  /// or the webhook has left the configuration. Without a registry, it is paused until the process ends.
  func noteGone(_ name: String, isFirst: Bool = true) {
    if isFirst { gone.insert(name) }
    guard gone.contains(name), !isStopping else { return }
    let operation = FleetOperation(
      .pause(.webhook(Array(name.utf8)), until: nil), by: Array("pushfleet webhooks".utf8),
      from: Array(ThisProcess.host.utf8), because: Array("the receiver answered 410".utf8))
    registry?.call(.write(.campaigns) { try $0.perform(operation, now: $1) }) { [weak self] result in
      guard let self, !isStopping else { return }
      switch result {
      // From now on, the registry says whether it is paused.
      case .success:
        gone.remove(name)
        modes?[.webhook(Array(name.utf8))] = .paused
      case .failure(let error):
        let fields: Log.Fields = ["webhook": name, "reason": "\(error)"]
        if isFirst { log.error("the registry doesn't know that a webhook is paused; trying again", fields) }
        loop.schedule(after: Self.pause) { [weak self] in self?.noteGone(name, isFirst: false) }
      }
    }
  }

  private func stop() {
    guard !isStopping else { return loop.stop() }
    isStopping = true
    ServiceManager.ofProcess.tell(.stopping)
    for sender in senders { sender.stop() }
    loop.schedule(after: Double(configuration.drainTimeout)) { [loop] in loop.stop() }
    awaitIdle()
  }

  // MARK: the webhooks, at the start and after each reload

  /// Starts, changes and ends senders as the configuration says. A webhook with a file that can't be used stays as it was.
  func serve(_ next: Configuration) -> [ConfigurationError] {
    var errors: [ConfigurationError] = []
    var former = Dictionary(senders.map { ($0.name, $0) }) { first, _ in first }
    senders = []
    for app in next.apps {
      for webhook in app.webhooks {
        let name = "\(app.id)/\(webhook.name)"
        let known = former.removeValue(forKey: name)
        if let known { senders.append(known) }
        do throws(ConfigurationError) {
          let receiver = try WebhookReceiver(webhook, app: app.id)
          if let known { known.reload(receiver) } else { senders.append(sender(name, receiver, app.id)) }
        } catch { errors.append(error) }
      }
    }
    for sender in former.values { sender.stop() }
    leaving += former.values
    gone.formIntersection(senders.map(\.name))
    return errors
  }

  private func sender(_ name: String, _ receiver: WebhookReceiver, _ app: String) -> WebhookSender {
    WebhookSender(
      name: name, receiver, queue: configuration.topology.webhookQueue(app, receiver.webhook.name), service: self)
  }

  /// After an error the previous settings stay in use.
  func reloadWebhooks(because reason: String) {
    guard !isStopping else { return }
    let next: Configuration
    do throws(ConfigurationError) {
      next = try reload()
      brokers = try next.brokerAddresses()
    } catch {
      return log.error("the old configuration stays in force", ["reason": "\(error)"])
    }
    log.info("reloading", ["because": reason])
    watch.follow(next.webhookFiles(configurationFile))
    for error in serve(next) { log.error("a webhook can't use its new settings", ["reason": "\(error)"]) }
    if let modes { follow(modes) }
    let others = next.changesForWebhookRestart(from: configuration)
    if !others.isEmpty { log.warning("some changed settings take effect only after a restart", ["settings": others]) }
    log.info("reloaded", ["webhooks": senders.count])
  }

  // MARK: metrics and probes; the service works without them

  func openFigures(_ endpoint: Endpoint) throws(ConfigurationError) {
    do throws(HTTPServerError) {
      figures = try FiguresServer(
        endpoint, loop: loop, home: "there are /metrics, /livez and /readyz here\n",
        metrics: { [unowned self] in WebhookFigures.text(senders, version: version) },
        readiness: { [unowned self] in readiness }
      ) { error in
        log.warning(
          "the metrics can't be served; trying again",
          ["reason": "\(error)", "hint": "if another process uses this address, set another one in PUSHFLEET_METRICS"])
      }
    } catch {
      throw ConfigurationError(key: "metrics", problem: "cannot be used: \(error)")
    }
  }

  private var readiness: HTTPAnswer {
    guard modes != nil else { return .text(503, "the registry hasn't said yet which webhooks are paused\n") }
    let waiting = senders.filter { !$0.isReady }.map(\.name)
    return waiting.isEmpty
      ? .text(200, "ready\n")
      : .text(503, "the queues of these webhooks can't be consumed: \(waiting.joined(separator: ", "))\n")
  }
}

/// A webhook's counters.
struct WebhookFigures {
  /// Calls that the receiver has answered with 2xx, and others.
  var accepted = 0
  var failed = 0
  /// Events of accepted calls.
  var delivered = 0
  /// Events that went back to the queue.
  var returned = 0

  /// The counters in Prometheus' text format 0.0.4. Call on the loop's thread.
  /// - Parameter version: the program's version.
  static func text(_ senders: [WebhookSender], version: String) -> String {
    func rows(_ value: (WebhookSender) -> Int) -> [(labels: MetricsFormat.Labels, value: Int)] {
      senders.map { ([("webhook", $0.name)], value($0)) }
    }
    var format = MetricsFormat()
    format.counters(
      "pushfleet_webhook_calls_total", "Calls, by outcome.",
      senders.flatMap { sender in
        [("accepted", sender.figures.accepted), ("failed", sender.figures.failed)]
          .map { ([("webhook", sender.name), ("outcome", $0)], $1) }
      })
    format.counters("pushfleet_webhook_events_delivered_total", "Events of accepted calls.", rows { $0.figures.delivered })
    format.counters(
      "pushfleet_webhook_events_returned_total", "Events given back to the queue unaccepted.", rows { $0.figures.returned })
    format.gauges(
      "pushfleet_webhook_failing_seconds",
      "Time since the first of the calls that have failed in a row; 0 after an accepted call.",
      rows(\.failingSeconds))
    format.gauges(
      "pushfleet_webhook_paused", "1 while an operator or status 410 pauses the webhook.", rows { $0.isPaused ? 1 : 0 })
    format.gauges(
      "pushfleet_webhook_ready", "0 while the webhook's queue isn't consumed, although nothing pauses the webhook.",
      rows { $0.isReady ? 1 : 0 })
    format.process(.current(), version: version)
    return format.text
  }
}
