import Logging
import Reactor
import Settings
import StatusHTTP
import Wire

/// A gateway process: its doors and its broker connection on one event loop. Signals stop it.
public final class Gateway {
  /// SIGINT and SIGTERM: the first one drains, the second one ends at once.
  private static let stopSignals: [Int32] = [2, 15]
  /// SIGUSR1 and SIGUSR2 are ignored; they would end the process.
  private static let forOthers: [Int32] = [10, 12]

  public typealias Reload = () throws(ConfigurationError) -> Configuration

  /// Shows what a worker with the configuration would send for a request of the application. Sends nothing.
  ///
  /// Returns an array with an object for each platform. For a request that is wrong itself (`isRefused`), returns an object with
  /// `error` and `reason`.
  public typealias Explain = (_ configuration: Configuration, _ app: String, _ body: [UInt8]) -> (
    isRefused: Bool, json: [UInt8]
  )

  private let context: GatewayContext
  private let loop: EventLoop
  private let configurationFile: String?
  private let reload: Reload
  private var watch: FileWatch
  private let manager = ServiceManager.ofProcess
  private var doors: [any Door] = []
  private var figuresServer: FiguresServer?
  private var expiryWatch = ExpiryWatch()
  private var isStopping = false
  private var deadline = MonotonicTime.distantFuture

  /// - Parameters:
  ///   - version: the program's version, for the log and the metrics.
  ///   - letters: carries out operators' orders on dead letters and held requests.
  ///   - explain: called on the gateway's thread.
  ///   - file: the configuration file. It is watched for changes, like the certificate files.
  ///   - reload: called on SIGHUP and when a watched file has changed.
  /// - Throws: `ConfigurationError` if a door or a credential can't be used; `SystemError` if the process is out of
  ///   descriptors.
  public init(
    _ configuration: Configuration, version: String, letters: any LetterWorker, explain: @escaping Explain, file: String?,
    reload: @escaping Reload
  ) throws {
    guard configuration.gateway != nil else {
      throw ConfigurationError(
        key: "gateway", problem: "is missing: name the doors, such as gateway: { http: { listen: \"127.0.0.1:8080\" } }")
    }
    configurationFile = file
    self.reload = reload
    watch = FileWatch(configuration.gatewayFiles(file))
    loop = try EventLoop()
    context = try GatewayContext(
      configuration, version: version, letters: letters, explain: explain, loop: loop,
      log: Log(level: configuration.log, format: configuration.logFormat))
  }

  /// Runs until a signal ends the gateway and every accepted message is settled.
  /// - Parameter whenOpen: called once, when the doors are open.
  public func run(whenOpen: () -> Void = {}) throws {
    let log = context.log
    log.describeDrops()
    Signals.ignore(Self.forOthers)
    let signals = try Signals(loop: loop, Self.stopSignals + [Signals.hangUp]) { [unowned self] signal in
      if signal == Signals.hangUp { return reloadDoors(because: "SIGHUP") }
      log.info("stopping", ["signal": Int(signal)])
      stop()
    }
    defer { signals.close() }
    log.info(
      "gateway starts",
      [
        "version": context.version, "pid": ThisProcess.pid, "host": ThisProcess.host,
        "configuration": configurationFile ?? "environment",
        "brokers": context.configuration.brokers.map { "\($0.host):\($0.port)" }, "prefix": context.topology.prefix,
        "apps": context.configuration.apps.count,
      ])
    context.broker.start()
    try openDoors()
    whenOpen()
    manager.tell(.ready)
    everySecond()
    loop.run()
    for door in doors { door.close() }
    figuresServer?.stop()
    context.registry?.close()
    log.info("gateway ended", context.figures.totals(waiting: context.broker.waiting))
  }

  private func openDoors() throws {
    if let endpoint = context.configuration.gatewayFigures { figuresServer = try context.openFigures(at: endpoint) }
    let settings = context.configuration.gateway
    let connectionLimits = ConnectionLimits(
      descriptors: ProcessUsage.raiseDescriptorLimit(), http: settings?.http != nil, binary: settings?.apns != nil,
      feedback: settings?.apns?.feedback != nil)
    if let settings = settings?.http { doors.append(try HTTPDoor(settings, connections: connectionLimits.http, context)) }
    if let settings = settings?.apns { doors.append(try BinaryDoor(settings, connectionLimits, context)) }
  }

  private func everySecond() {
    manager.tell(.alive)
    context.registry?.lookAfter()
    lookAtCertificates()
    for door in doors { door.lookAround() }
    figuresServer?.lookAround()
    if !isStopping, watch.hasChanged() { reloadDoors(because: "a file has changed") }
    loop.schedule(after: 1) { [weak self] in self?.everySecond() }
  }

  private func lookAtCertificates() {
    let expiries = doors.compactMap(\.expiry).sorted { $0.notAfter < $1.notAfter }
    context.figures.expiries = expiries
    expiryWatch.warn(of: expiries, at: loop.wallClock / 1000, context.log)
  }

  // MARK: other settings

  /// After an error the previous settings stay in use.
  private func reloadDoors(because reason: String) {
    let log = context.log
    let next: Configuration
    do throws(ConfigurationError) {
      next = try reload()
      context.broker.brokers = try next.brokerAddresses()
    } catch {
      return log.error("the old configuration stays in force", ["reason": "\(error)"])
    }
    context.fleet.reload(context.broker.brokers)
    log.info("reloading", ["because": reason])
    watch.follow(next.gatewayFiles(configurationFile))
    for door in doors {
      do throws(ConfigurationError) { try door.reload(next) } catch {
        log.error("the old certificate stays in use", ["reason": "\(error)"])
      }
    }
    let others = next.changesForGatewayRestart(from: context.configuration)
    if !others.isEmpty { log.warning("some changed settings take effect only after a restart", ["settings": others]) }
  }

  // MARK: the end

  private func stop() {
    guard !isStopping else { return end() }
    isStopping = true
    manager.tell(.stopping)
    deadline = loop.now.advanced(bySeconds: Double(context.configuration.drainTimeout))
    for door in doors { door.drain() }
    awaitQuiet()
  }

  private func awaitQuiet() {
    let isQuiet = doors.allSatisfy(\.isIdle) && context.broker.waiting == 0
    guard !isQuiet, loop.now < deadline else { return end() }
    loop.schedule(after: Self.quietPause) { [weak self] in self?.awaitQuiet() }
  }

  private static let quietPause = 0.02

  private func end() {
    context.fleet.close()
    context.broker.close { [loop] in loop.stop() }
    loop.schedule(after: 2) { [loop] in loop.stop() }
  }
}
