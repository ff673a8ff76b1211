import Delivery
import Logging
import PushCore
import Reactor
import Settings
import StatusHTTP
import Wire

/// A worker process: its shards, each on its own thread, and the signals that stop it.
public final class Fleet: TurnHook {
  public enum End: Sendable {
    /// Drained, or all queues were empty.
    case done
    /// A credential can't be used, or the broker's topology conflicts: exit status 78.
    case misconfigured(String)
    /// The broker refused the first connection or can't be reached, or the system lacks resources: exit status 69.
    case unreachable(String)
  }

  private static let interrupt: Int32 = 2
  private static let forOthers: [Int32] = [10, 12]  // SIGUSR1, SIGUSR2: they would end the process
  private static let terminate: Int32 = 15

  public typealias Reload = () throws(ConfigurationError) -> Configuration

  private let configuration: Configuration
  private var credentialStore = CredentialStore()
  private var latest: ShardSetup?
  private let configurationFile: String?
  private let reload: Reload
  private var watch: FileWatch
  private var warned: Set<String>
  private let version: String
  private let isUntilEmpty: Bool
  private let log: Log
  private let loop: EventLoop
  private var threads: [ThreadHandle] = []
  private let board: ShardBoard
  private let manager = ServiceManager.ofProcess
  private var metrics: MetricsServer?
  private var status: ProcessStatus
  private var answers: StatusAnswers?
  private var isEnding = false
  private var hasToldReady = false

  /// - Parameters:
  ///   - version: the program's version, for the log.
  ///   - file: the configuration file, which is watched like credential files.
  ///   - reload: called on SIGHUP and when a watched file changes.
  /// - Throws: `ConfigurationError` if a credential can't be used; another error if the process has no file descriptors left.
  public init(_ configuration: Configuration, version: String, file: String?, isUntilEmpty: Bool, reload: @escaping Reload)
    throws
  {
    _ = ProcessUsage.raiseDescriptorLimit()
    self.configuration = configuration
    self.version = version
    configurationFile = file
    self.reload = reload
    self.isUntilEmpty = isUntilEmpty
    watch = FileWatch(configuration.watchedFiles + (file.map { [$0] } ?? []))
    log = Log(level: configuration.log, format: configuration.logFormat)
    log.describeDrops()
    let warnings = configuration.warnings
    for warning in warnings { log.warning(warning) }
    warned = Set(warnings)
    loop = try EventLoop()
    board = ShardBoard(shards: configuration.shards, at: loop.now)
    status = ProcessStatus(startedAt: loop.wallClock)
    if let error = credentialStore.load(configuration).first {
      // Without free descriptors, an unreadable file doesn't mean that the configuration is wrong.
      throw ProcessUsage.isOutOfDescriptors ? OutOfDescriptors(reason: "\(error)") : error
    }
    loop.afterEvents(self)
  }

  private struct OutOfDescriptors: Error, CustomStringConvertible {
    let reason: String
    var description: String { reason }
  }

  /// Runs until all queues are empty or a signal comes: the first SIGTERM or SIGINT drains, the second stops at once.
  public func run() throws -> (End, Counters) {
    Signals.ignore(Self.forOthers)
    logStart()
    let signals = try Signals(loop: loop, [Signals.hangUp, Self.interrupt, Self.terminate]) { [unowned self] signal in
      if signal == Signals.hangUp { return reloadCredentials(because: "SIGHUP") }
      log.info("stopping", ["signal": Int(signal)])
      manager.tell(.stopping)
      board.stopAll()
    }
    defer { signals.close() }
    if let endpoint = configuration.metrics { try serveFigures(at: endpoint) }
    defer { metrics?.stop() }
    for number in board.controls.indices { try start(number) }
    answerQuestions()
    everySecond()
    loop.run()
    // Threads must release their objects before the process exits, which destroys OpenSSL's locks.
    for thread in threads { thread.join() }
    let (end, counters) = board.outcome
    logEnd(end, counters)
    return (end, counters)
  }

  private func logEnd(_ end: End, _ counters: Counters) {
    switch end {
    case .done: break
    case .misconfigured(let reason), .unreachable(let reason): log.error("the worker can't go on", ["reason": reason])
    }
    log.info("worker ended", Log.Fields(counters.summary.map { ($0, $1 as any JSONMember) }))
  }

  private func logStart() {
    let pools = configuration.poolNames
    log.info(
      "worker starts",
      [
        "version": version, "pid": ThisProcess.pid, "host": ThisProcess.host,
        "configuration": configurationFile ?? "environment",
        "brokers": configuration.brokers.map { "\($0.host):\($0.port)" }, "prefix": configuration.prefix,
        "shards": configuration.shards,
        "apps": configuration.apps.count, "first_apps": Log.first(of: configuration.apps.map(\.id)),
        "pools": pools.count, "first_pools": Log.first(of: pools),
        "registry": configuration.registryKind,
      ])
  }

  private func answerQuestions() {
    answers = StatusAnswers(loop: loop, configuration.topology, credentialStore.brokers, log) { [unowned self] allPools in
      let now = loop.now
      return status.json(WorkerReport(board, version: version, now: now), allPools: allPools, at: now)
    }
    answers?.start()
  }

  private func everySecond() {
    status.sample(board.reports, at: loop.now)
    if watch.hasChanged() { reloadCredentials(because: "a file has changed") }
    tellManager()
    metrics?.lookAround()
    loop.schedule(after: 1) { [weak self] in self?.everySecond() }
  }

  /// Reports readiness when all shards' loops run. The broker may be down: a broker outage must not fail the start.
  private func tellManager() {
    if !hasToldReady, board.hasBegun {
      hasToldReady = true
      manager.tell(.ready)
    }
    if board.health(at: loop.now).isAlive { manager.tell(.alive) }
  }

  /// Serves metrics. An occupied port is tried again until it is free; meanwhile the worker delivers without metrics.
  /// - Throws: `ConfigurationError` if trying again would not help.
  private func serveFigures(at endpoint: Endpoint, isAgain: Bool = false) throws(ConfigurationError) {
    do throws(HTTPServerError) {
      metrics = try MetricsServer(endpoint, board, version: version)
      if isAgain { log.info("the figures are served", ["address": "\(endpoint)"]) }
    } catch {
      guard isAgain || error.isPassing else { throw ConfigurationError(key: "metrics", problem: "cannot be used: \(error)") }
      if !isAgain { log.warning("the metrics can't be served; trying again", ["reason": "\(error)"]) }
      loop.schedule(after: Self.figuresPause) { [weak self] in try? self?.serveFigures(at: endpoint, isAgain: true) }
    }
  }

  private static let figuresPause = 1.0
  /// Seconds to wait until the broker closes the connection for status questions.
  private static let farewell = 1.0

  /// Reloads the configuration. An unusable configuration or credential leaves the old one in use.
  private func reloadCredentials(because reason: String) {
    let next: Configuration
    do throws(ConfigurationError) { next = try reload() } catch {
      board.reloadAll(nil)
      return log.error("the old configuration stays in force", ["reason": "\(error)"])
    }
    log.info("reloading", ["because": reason])
    watch.follow(next.watchedFiles + (configurationFile.map { [$0] } ?? []))
    for error in credentialStore.load(next) {
      let isMissing = error.key.lastIndex(of: ".").map { credentialStore.missing.contains(String(error.key[..<$0])) } ?? false
      log.error(
        isMissing ? "requests for this credential are refused" : "the old credential stays in use", ["reason": "\(error)"])
    }
    let warnings = next.warnings
    for warning in warnings where !warned.contains(warning) { log.warning(warning) }
    warned = Set(warnings)
    let others = next.changesForRestart(from: configuration)
    if !others.isEmpty {
      log.warning("other changed settings need a restart", ["settings": others])
    }
    answers?.reload(credentialStore.brokers)
    board.reloadAll(setup(of: next))
  }

  private func setup(of configuration: Configuration) -> ShardSetup {
    let setup = ShardSetup(
      configuration: configuration, credentials: credentialStore.credentials, brokers: credentialStore.brokers, after: latest,
      version: version)
    latest = setup
    return setup
  }

  public func turnEnding(at now: MonotonicTime) {
    guard board.hasEnded, !isEnding else { return }
    isEnding = true
    answers?.close { [unowned self] in loop.stop() }
    loop.schedule(after: Self.farewell) { [unowned self] in loop.stop() }
  }

  private func start(_ number: Int) throws {
    let setup = setup(of: configuration)
    let thread = try startThread(named: "shard \(number)") { [isUntilEmpty, board, mailbox = loop.mailbox] in
      board.noteEnd(of: number, Self.runShard(number, setup, isUntilEmpty: isUntilEmpty, board.controls[number]))
      mailbox.post { _ in }
    }
    threads.append(thread)
  }

  private static func runShard(
    _ number: Int, _ setup: ShardSetup, isUntilEmpty: Bool, _ control: ShardControl
  ) -> (End, Counters) {
    do {
      let loop = try EventLoop()
      // Keep the loop's descriptors also after an error, or the check for exhausted descriptors would find free ones.
      defer { withExtendedLifetime(loop) {} }
      do throws(ConfigurationError) {
        let shard = try Shard(setup, number: number, isUntilEmpty: isUntilEmpty, host: loop, control: control)
        control.begin { [mailbox = loop.mailbox] in mailbox.post { _ in } }
        loop.afterEvents(shard)
        shard.start { [unowned loop] in loop.stop() }
        loop.run()
        return shard.close()
      } catch {
        // Without free descriptors, the error doesn't mean that the configuration is wrong.
        return (ProcessUsage.isOutOfDescriptors ? .unreachable("\(error)") : .misconfigured("\(error)"), Counters())
      }
    } catch {
      return (.unreachable("\(error)"), Counters())
    }
  }
}
