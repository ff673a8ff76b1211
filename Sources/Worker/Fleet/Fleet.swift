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

  private static let interrupt: Int32 = 2
  private static let terminate: Int32 = 15

  private let configuration: Configuration
  private let isUntilEmpty: Bool
  private let log: Log
  private let loop: EventLoop
  private let board = ShardBoard()

  /// - Throws: when the process is out of descriptors.
  public init(_ configuration: Configuration, isUntilEmpty: Bool) throws {
    self.configuration = configuration
    self.isUntilEmpty = isUntilEmpty
    log = Log(level: configuration.log)
    loop = try EventLoop()
    loop.afterEvents(self)
  }

  /// Runs until a signal, or until everything is empty; returns how it ended and what was done.
  ///
  /// The first SIGTERM or SIGINT drains, the second stops at once.
  public func run() throws -> (End, Counters) {
    let signals = try Signals(loop: loop, [Self.interrupt, Self.terminate]) { [unowned self] signal in
      log.info("stopping", ["signal": "\(signal)"])
      board.stopAll()
    }
    defer { signals.close() }
    for number in 0..<configuration.shards { try start(number) }
    loop.run()
    return board.outcome
  }

  public func turnEnding(at now: MonotonicTime) {
    if board.ended == configuration.shards { loop.stop() }
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
