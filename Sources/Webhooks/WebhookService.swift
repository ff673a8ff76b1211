import Broker
import DeviceRegistry
import Logging
import PushCore
import Reactor
import Settings

/// A process that posts the events of all webhooks. Signals stop it. Any number of such processes may run side by side.
public final class WebhookService {
  private static let stopSignals: [Int32] = [2, 15]
  /// Seconds between two looks at what operators have paused.
  private static let pause = 1.0
  /// Seconds after which webhooks are served even if the registry hasn't said which ones are paused.
  private static let longestWait = 2.0

  private let loop: EventLoop
  private let log: Log
  private let registry: RegistryClient?
  private var senders: [WebhookSender] = []
  /// Webhooks whose receivers wanted no more events, as long as the registry doesn't know it.
  private var gone: Set<String> = []
  private let drainTimeout: Double
  private var isKnown = false
  private var isStopping = false

  /// - Throws: `ConfigurationError` if there is no webhook, or one can't be used.
  public init(_ configuration: Configuration) throws {
    loop = try EventLoop()
    log = Log(level: configuration.log, format: configuration.logFormat)
    drainTimeout = Double(configuration.drainTimeout)
    registry = try configuration.registry.map { [loop, log] (location) throws(ConfigurationError) in
      try RegistryClient(location, limits: configuration.registryLimits, host: LoopRegistryHost(loop), log: log)
    }
    let brokers = try configuration.brokerAddresses()
    for app in configuration.apps {
      for webhook in app.webhooks {
        let sender = try WebhookSender(
          webhook, app: app.id, topology: configuration.topology, brokers: brokers, loop: loop, log: log)
        sender.onGone = { [unowned self, unowned sender] in noteGone(sender) }
        senders.append(sender)
      }
    }
    guard !senders.isEmpty else {
      throw ConfigurationError(key: "apps", problem: "has no webhooks: name them in apps.<id>.webhooks")
    }
  }

  /// Runs until a signal ends it and no call is under way.
  public func run() throws {
    let signals = try Signals(loop: loop, Self.stopSignals) { [unowned self] signal in
      log.info("stopping", ["signal": Int(signal)])
      stop()
    }
    defer { signals.close() }
    log.info("webhooks start", ["webhooks": senders.count])
    ServiceManager.ofProcess.tell(.ready)
    everySecond()
    loop.schedule(after: Self.longestWait) { [unowned self] in if !isKnown, !isStopping { follow([:]) } }
    loop.run()
    registry?.close()
  }

  private func everySecond() {
    ServiceManager.ofProcess.tell(.alive)
    registry?.lookAfter()
    look()
    if isStopping, senders.allSatisfy(\.isIdle) { return loop.stop() }
    loop.schedule(after: isStopping ? 0.05 : Self.pause) { [weak self] in self?.everySecond() }
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

  private func follow(_ modes: [ControlSubject: Control.Mode]) {
    isKnown = true
    for sender in senders {
      sender.want(modes[.webhook(Array(sender.name.utf8))] != .paused && !gone.contains(sender.name))
    }
  }

  private func noteGone(_ sender: WebhookSender) {
    gone.insert(sender.name)
    record(gone: sender.name)
  }

  /// Pauses the webhook in the registry, however often that takes. Without a registry, it is paused until the process ends.
  private func record(gone name: String) {
    let operation = FleetOperation(
      .pause(.webhook(Array(name.utf8)), until: nil), by: Array("pushfleet webhooks".utf8),
      from: Array(ThisProcess.host.utf8), because: Array("the receiver answered 410".utf8))
    registry?.call(.write(.campaigns) { try $0.perform(operation, now: $1) }) { [weak self] result in
      guard let self, !isStopping else { return }
      switch result {
      // From now on, the registry says whether it is paused.
      case .success: gone.remove(name)
      case .failure(let error):
        log.error("the registry doesn't know that a webhook is paused", ["webhook": name, "reason": "\(error)"])
        loop.schedule(after: Self.pause) { [weak self] in self?.record(gone: name) }
      }
    }
  }

  private func stop() {
    guard !isStopping else { return loop.stop() }
    isStopping = true
    ServiceManager.ofProcess.tell(.stopping)
    for sender in senders { sender.stop() }
    loop.schedule(after: drainTimeout) { [loop] in loop.stop() }
    everySecond()
  }
}
