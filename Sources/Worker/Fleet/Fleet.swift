import Reactor
import Wire

/// A worker process: its shards, each on a thread of its own, and the signals that stop it.
public final class Fleet: TurnHook {
  /// How a process or a shard ended.
  public enum End: Sendable {
    /// Drained, or everything was empty.
    case done
    /// A credential cannot be used, or the broker's topology contradicts ours: exit status 78.
    case misconfigured(String)
    /// The broker refused us before it ever let us in: exit status 69.
    case unreachable(String)
  }

  private static let hangUp: Int32 = 1
  private static let interrupt: Int32 = 2
  private static let terminate: Int32 = 15

  /// Reads the configuration anew.
  public typealias Reload = () throws(ConfigurationError) -> Configuration

  private var configuration: Configuration
  private let configurationFile: String?
  private let reload: Reload
  private var watch = FileWatch()
  private let isUntilEmpty: Bool
  private let shards: Int
  private let log: Log
  private let loop: EventLoop
  private let board = ShardBoard()

  /// - Parameters:
  ///   - file: the configuration's file, which is watched as the credentials' files are.
  ///   - reload: called on SIGHUP and when one of the files has changed.
  /// - Throws: when the process is out of descriptors.
  public init(_ configuration: Configuration, file: String?, isUntilEmpty: Bool, reload: @escaping Reload) throws {
    self.configuration = configuration
    configurationFile = file
    self.reload = reload
    self.isUntilEmpty = isUntilEmpty
    shards = configuration.shards
    log = Log(level: configuration.log)
    loop = try EventLoop()
    loop.afterEvents(self)
  }

  /// Runs until a signal, or until everything is empty; returns how it ended and what was done.
  ///
  /// The first SIGTERM or SIGINT drains, the second stops at once.
  public func run() throws -> (End, Counters) {
    let signals = try Signals(loop: loop, [Self.hangUp, Self.interrupt, Self.terminate]) { [unowned self] signal in
      if signal == Self.hangUp { return reloadCredentials(because: "SIGHUP") }
      log.info("stopping", ["signal": "\(signal)"])
      board.stopAll()
    }
    defer { signals.close() }
    let metrics = try configuration.metrics.map { try MetricsServer($0, board) }
    defer { metrics?.stop() }
    for number in 0..<shards { try start(number) }
    watchFiles()
    loop.run()
    return board.outcome
  }

  /// About once a second, on the main thread.
  private func watchFiles() {
    if watch.hasChanged(configuration.credentialFiles + (configurationFile.map { [$0] } ?? [])) {
      reloadCredentials(because: "a file has changed")
    }
    loop.schedule(after: 1) { [weak self] in self?.watchFiles() }
  }

  /// A configuration that can't be used leaves the old one in force.
  private func reloadCredentials(because reason: String) {
    do throws(ConfigurationError) {
      configuration = try reload()
      log.info("reloading credentials", ["because": reason])
      board.reloadAll(configuration)
    } catch {
      log.error("the old configuration stays in force", ["reason": "\(error)"])
    }
  }

  public func turnEnding(at now: MonotonicTime) {
    if board.ended == shards { loop.stop() }
  }

  private func start(_ number: Int) throws {
    try startThread(named: "shard \(number)") { [configuration, isUntilEmpty, board, mailbox = loop.mailbox] in
      do {
        let loop = try EventLoop()
        let control = ShardControl(mailbox: loop.mailbox)
        let shard = try Shard(configuration, number: number, isUntilEmpty: isUntilEmpty, loop: loop, control: control)
        board.register(control)
        let (end, counters) = shard.run()
        board.note(end, counters)
      } catch {
        board.note(.misconfigured("\(error)"), Counters())
      }
      mailbox.post { _ in }
    }
  }
}
