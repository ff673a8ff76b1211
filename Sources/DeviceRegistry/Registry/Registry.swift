import Reactor
import Synchronization
import Wire

/// Receives a ``Registry``'s answers on the loop's thread, never during a call into the registry.
public protocol RegistryHandler: AnyObject {
  /// - Parameter result: a value of the call's answer type; or an error: the request had no effect, or one that is safe to
  ///   repeat.
  func registryAnswered(_ tag: Int, _ result: Result<any Sendable, RegistryError>)
  /// From now on, requests are refused at once with this error; nil: they are accepted.
  func registryChanged(_ error: RegistryError?)
  /// Writes of one kind fail while look-ups work, until this is called with nil.
  func registryWritesChanged(_ kind: WriteKind, _ fault: RegistryError?)
}

public protocol RegistryDoor: AnyObject {
  var waiting: Int { get }
  /// Submits a request. The answer comes under `tag` in a later turn, in the order of the requests.
  /// - Throws: at once if the registry is unavailable, too slow or overloaded. Then nothing was sent.
  func submit(_ request: RegistryRequest, tag: Int) throws(RegistryError)
  /// Fails changes that were submitted but not begun. Their source gives them to another worker.
  func withdrawChanges()
  /// Requests submitted before are still processed, but no answer is reported any more.
  func close()
}

/// Limits of a shard's access to its registry.
public struct RegistryOptions: Sendable {
  public var mostWaiting = 4_096
  /// Seconds without any answer before further requests are refused. Longer than one statement may take.
  public var slowAfter = 3.0
  public var backoff = Backoff(base: 0.1, cap: 10)
  public var store = StoreOptions(statementTimeout: 2_000, lockTimeout: 500)

  public init() {}
}

/// A shard's access to its registry. A separate thread serves the requests, so the loop never waits for a database. Confined to
/// the loop's thread. It opens and reopens by itself. While the database is full, damaged, down or slow, requests are refused
/// at once with the reason, so that other work can continue. While the database is locked, only writes are refused.
public final class Registry: RegistryDoor, TurnHook {
  public enum Condition: Equatable {
    /// Requests wait for the first attempt to open. Becomes available or unavailable.
    case opening
    /// Becomes unavailable or closed.
    case available
    /// Becomes available or closed.
    case unavailable(RegistryError)
    /// Final.
    case closed
  }

  public private(set) var condition = Condition.opening
  public var waiting: Int { submitted.count }

  private let loop: EventLoop
  private let options: RegistryOptions
  private let thread: StoreThread
  private weak var handler: (any RegistryHandler)?
  /// When each unanswered request was submitted. Answers come in the same order.
  private var submitted = Ring<MonotonicTime>()
  /// Submitted in this turn of the loop. These requests are passed on together and share transactions.
  private var gathered: [StoreThread.Job] = []
  private var progressedAt = MonotonicTime(nanoseconds: 0)
  private var era = 0
  private var changeEra = 0

  /// - Throws: if no thread can be started. Problems of the registry itself are reported to the handler.
  public init(
    _ location: RegistryLocation, loop: EventLoop, handler: any RegistryHandler, options: RegistryOptions = RegistryOptions(),
    limits: RegistryLimits = RegistryLimits()
  ) throws(SystemError) {
    self.loop = loop
    self.handler = handler
    self.options = options
    thread = StoreThread(mailbox: loop.mailbox, backoff: options.backoff) { isFirst throws(RegistryError) in
      // A registry that existed before isn't created again, because every registration would be unknown.
      var store = options.store
      store.create = store.create && isFirst
      return try openRegistry(location, options: store, limits: limits)
    }
    thread.registry = self
    try thread.start()
  }

  deinit { thread.close() }

  public func submit(_ request: RegistryRequest, tag: Int) throws(RegistryError) {
    switch condition {
    case .opening, .available: break
    case .unavailable(let error): throw error
    case .closed: throw .unavailable(.down, "closed")
    }
    guard waiting < options.mostWaiting else {
      throw .unavailable(.overloaded, "\(waiting) requests are waiting for the registry")
    }
    if let oldest = submitted.first {
      let silence = loop.now.seconds(since: max(oldest, progressedAt))
      guard silence <= options.slowAfter else {
        throw .unavailable(.slow, "no answer from the registry for \(Int(silence * 1000)) ms")
      }
    }
    submitted.append(loop.now)
    gathered.append(StoreThread.Job(tag: tag, era: era, changeEra: changeEra, now: loop.wallClock, request: request))
    if !loop.isInTurn || gathered.count == StoreThread.jobsPerTurn {
      handOver()
    } else if gathered.count == 1 {
      loop.atEndOfTurn(self)
    }
  }

  public func turnEnding(at now: MonotonicTime) { handOver() }

  private func handOver() {
    guard !gathered.isEmpty else { return }
    thread.submit(gathered)
    gathered.removeAll(keepingCapacity: true)
  }

  public func withdrawChanges() { changeEra = thread.changeEra.add(1, ordering: .relaxed).newValue }

  /// Ends the thread after the earlier requests.
  public func close() {
    condition = .closed
    handler = nil
    handOver()
    thread.close()
  }

  // MARK: Called by the thread, on the loop

  func completed(_ completions: [StoreThread.Completion]) {
    for _ in completions { _ = submitted.popFirst() }
    for completion in completions {
      if case .success = completion.result { progressedAt = loop.now }
      handler?.registryAnswered(completion.tag, completion.result)
    }
  }

  /// A change failed, and all changes of earlier eras fail with it. Later changes may be applied.
  func changesFailed(_ era: Int) { changeEra = max(changeEra, era) }

  func writesChanged(_ kind: WriteKind, fault: RegistryError?) {
    guard condition != .closed else { return }
    handler?.registryWritesChanged(kind, fault)
  }

  func becameAvailable(_ era: Int) {
    self.era = era
    become(.available, nil)
  }

  func becameUnavailable(_ error: RegistryError) { become(.unavailable(error), error) }

  private func become(_ next: Condition, _ error: RegistryError?) {
    guard condition != .closed, condition != next else { return }
    condition = next
    handler?.registryChanged(error)
  }
}
