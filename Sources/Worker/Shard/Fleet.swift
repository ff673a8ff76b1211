import Delivery
import Logging
import Reactor
import Settings
import StatusHTTP
import Wire

/// A worker process: its shards, each on a thread of its own, and the signals that stop it.
public final class Fleet: TurnHook {
  /// How a process or a shard ended.
  public enum End: Sendable {
    /// Drained, or everything was empty.
    case done
    /// A credential cannot be used, or the broker's topology contradicts ours: exit status 78.
    case misconfigured(String)
    /// The broker refused us before it ever let us in, or the system has too little left: exit status 69.
    case unreachable(String)
  }

  private static let hangUp: Int32 = 1
  private static let interrupt: Int32 = 2
  private static let forOthers: [Int32] = [10, 12]  // SIGUSR1, SIGUSR2: they would end the process
  private static let terminate: Int32 = 15

  /// Reads the configuration anew.
  public typealias Reload = () throws(ConfigurationError) -> Configuration

  /// What the shards were started with.
  private let configuration: Configuration
  private var shelf = CredentialShelf()
  /// What the shards were last given.
  private var latest: ShardSetup?
  private let configurationFile: String?
  private let reload: Reload
  private var watch: FileWatch
  /// What the configuration was last warned of.
  private var warned: Set<String>
  private let version: String
  private let isUntilEmpty: Bool
  private let shards: Int
  private let log: Log
  private let loop: EventLoop
  private var threads: [ThreadHandle] = []
  private let board: ShardBoard
  private let batch: BatchEnd
  private let manager = ServiceManager.ofProcess
  private var metrics: MetricsServer?
  private var status: ProcessStatus
  private var answers: StatusAnswers?
  private var isEnding = false
  private var hasToldReady = false

  /// - Parameters:
  ///   - version: this program's, for the log.
  ///   - file: the configuration's file, which is watched as the credentials' files are.
  ///   - reload: called on SIGHUP and when one of the files has changed.
  /// - Throws: `ConfigurationError` when a credential can't be used; when the process is out of descriptors.
  public init(_ configuration: Configuration, version: String, file: String?, isUntilEmpty: Bool, reload: @escaping Reload)
    throws
  {
    _ = ProcessUsage.raiseDescriptorLimit()
    self.configuration = configuration
    self.version = version
    configurationFile = file
    self.reload = reload
    self.isUntilEmpty = isUntilEmpty
    shards = configuration.shards
    watch = FileWatch(configuration.watchedFiles + (file.map { [$0] } ?? []))
    log = Log(level: configuration.log, format: configuration.logFormat)
    log.describeDrops()
    let warnings = configuration.warnings
    for warning in warnings { log.warning(warning) }
    warned = Set(warnings)
    loop = try EventLoop()
    board = ShardBoard(shards: shards, at: loop.now)
    status = ProcessStatus(startedAt: loop.wallClock)
    batch = BatchEnd(shards: shards)
    if let error = shelf.load(configuration).first {
      // Without descriptors, what can't be opened says nothing of the configuration.
      throw ProcessUsage.isOutOfDescriptors ? OutOfDescriptors(reason: "\(error)") : error
    }
    loop.afterEvents(self)
  }

  private struct OutOfDescriptors: Error, CustomStringConvertible {
    let reason: String
    var description: String { reason }
  }

  /// Runs until a signal, or until everything is empty; returns how it ended and what was done.
  ///
  /// The first SIGTERM or SIGINT drains, the second stops at once.
  public func run() throws -> (End, Counters) {
    Signals.ignore(Self.forOthers)
    logStart()
    let signals = try Signals(loop: loop, [Self.hangUp, Self.interrupt, Self.terminate]) { [unowned self] signal in
      if signal == Self.hangUp { return reloadCredentials(because: "SIGHUP") }
      log.info("stopping", ["signal": Int(signal)])
      manager.tell(.stopping)
      board.stopAll()
    }
    defer { signals.close() }
    if let endpoint = configuration.metrics { try serveFigures(at: endpoint) }
    defer { metrics?.stop() }
    for number in 0..<shards { try start(number) }
    answerQuestions()
    everySecond()
    loop.run()
    // What a thread still lets go of, it lets go of before the process ends and OpenSSL's locks with it.
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
    log.info(
      "worker ended",
      [
        "received": counters.received, "redelivered": counters.redelivered, "delivered": counters.delivered,
        "failed": counters.failures, "expired": counters.expired, "collapsed": counters.collapsed,
        "retries": counters.retries, "parked": counters.parked, "held": counters.putToHold, "unknown": counters.unknownOutcomes,
        "duplicates_suppressed": counters.duplicatesSuppressed, "feedback": counters.feedback,
        "dead_letters": counters.deadLetters, "results": counters.results,
      ])
  }

  private func logStart() {
    let pools = configuration.poolNames
    log.info(
      "worker starts",
      [
        "version": version, "pid": ThisProcess.pid, "host": ThisProcess.host,
        "configuration": configurationFile ?? "environment",
        "brokers": LogList(configuration.brokers.map { "\($0.host):\($0.port)" }), "prefix": configuration.prefix,
        "shards": shards,
        "apps": configuration.apps.count, "first_apps": LogList.first(of: configuration.apps.map(\.id)),
        "pools": pools.count, "first_pools": LogList.first(of: pools),
        "registry": configuration.registryKind,
      ])
  }

  private func answerQuestions() {
    answers = StatusAnswers(loop: loop, configuration.topology, shelf.brokers, log) { [unowned self] allPools in
      let now = loop.now
      return status.json(WorkerReport(board, version: version, now: now), allPools: allPools, at: now)
    }
    answers?.start()
  }

  /// On the main thread.
  private func everySecond() {
    status.sample(board.reports, at: loop.now)
    if watch.hasChanged() { reloadCredentials(because: "a file has changed") }
    tellManager()
    metrics?.lookAround()
    loop.schedule(after: 1) { [weak self] in self?.everySecond() }
  }

  /// Ready once every shard's loop runs, whether the broker is there or not: starting must not fail in an outage of the broker.
  private func tellManager() {
    if !hasToldReady, board.hasBegun {
      hasToldReady = true
      manager.tell(.ready)
    }
    if board.health(at: loop.now).isAlive { manager.tell(.alive) }
  }

  /// A port that another process has is tried again until it is free: a worker delivers without its figures.
  ///
  /// - Throws: `ConfigurationError` when trying again would not help.
  private func serveFigures(at endpoint: Endpoint) throws(ConfigurationError) {
    do throws(HTTPServerError) { metrics = try MetricsServer(endpoint, board, version: version) } catch {
      guard error.isPassing else { throw ConfigurationError(key: "metrics", problem: "cannot be used: \(error)") }
      log.warning("the figures can't be served; trying again", ["reason": "\(error)"])
      loop.schedule(after: Self.figuresPause) { [weak self] in self?.serveFiguresAgain(at: endpoint) }
    }
  }

  private func serveFiguresAgain(at endpoint: Endpoint) {
    do throws(HTTPServerError) {
      metrics = try MetricsServer(endpoint, board, version: version)
      log.info("the figures are served", ["address": "\(endpoint)"])
    } catch {
      loop.schedule(after: Self.figuresPause) { [weak self] in self?.serveFiguresAgain(at: endpoint) }
    }
  }

  /// Seconds.
  private static let figuresPause = 1.0
  /// Seconds that the broker may take to close the connection of questions.
  private static let farewell = 1.0

  /// A configuration that can't be used leaves the old one in force; a credential that can't be used, the old credential.
  private func reloadCredentials(because reason: String) {
    let next: Configuration
    do throws(ConfigurationError) { next = try reload() } catch {
      return log.error("the old configuration stays in force", ["reason": "\(error)"])
    }
    log.info("reloading", ["because": reason])
    watch.follow(next.watchedFiles + (configurationFile.map { [$0] } ?? []))
    for error in shelf.load(next) {
      let isMissing = error.key.lastIndex(of: ".").map { shelf.missing.contains(String(error.key[..<$0])) } ?? false
      log.error(
        isMissing ? "what is to go by this credential is refused" : "the old credential stays in use", ["reason": "\(error)"])
    }
    let warnings = next.warnings
    for warning in warnings where !warned.contains(warning) { log.warning(warning) }
    warned = Set(warnings)
    let others = next.changesForRestart(from: configuration)
    if !others.isEmpty {
      log.warning("a restart is needed for what else has changed", ["settings": LogList(others)])
    }
    answers?.reload(shelf.brokers)
    board.reloadAll(setup(of: next))
  }

  /// What the shards are to work with.
  private func setup(of configuration: Configuration) -> ShardSetup {
    let setup = ShardSetup(
      configuration: configuration, credentials: shelf.credentials, brokers: shelf.brokers, after: latest, version: version)
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
    let thread = try startThread(named: "shard \(number)") { [isUntilEmpty, board, batch, mailbox = loop.mailbox] in
      board.noteEnd(of: number, Self.runShard(number, setup, isUntilEmpty: isUntilEmpty, board, batch))
      mailbox.post { _ in }
    }
    threads.append(thread)
  }

  /// A shard's life, on its thread.
  private static func runShard(
    _ number: Int, _ setup: ShardSetup, isUntilEmpty: Bool, _ board: ShardBoard, _ batch: BatchEnd
  ) -> (End, Counters) {
    do {
      let loop = try EventLoop()
      // Held in a failure as well, or there would be room for a descriptor again when that is asked.
      defer { withExtendedLifetime(loop) {} }
      let control = ShardControl(at: loop.now, batch: batch) { [mailbox = loop.mailbox] in mailbox.post { _ in } }
      do throws(ConfigurationError) {
        let shard = try Shard(setup, number: number, isUntilEmpty: isUntilEmpty, host: LoopHost(loop), control: control)
        board.register(control, as: number)
        loop.afterEvents(shard)
        shard.start { [unowned loop] in loop.stop() }
        loop.run()
        return shard.close()
      } catch {
        // Then what can't be opened says nothing of the configuration.
        return (ProcessUsage.isOutOfDescriptors ? .unreachable("\(error)") : .misconfigured("\(error)"), Counters())
      }
    } catch {
      return (.unreachable("\(error)"), Counters())
    }
  }
}
