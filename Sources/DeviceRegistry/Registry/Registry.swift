import Reactor
import Synchronization
import Wire

/// Who asks a ``Registry``. Called on the loop's thread, never from within a call into the registry.
public protocol RegistryHandler: AnyObject {
  /// - Parameter answer: of the type that the call has.
  func registryAnswered(_ tag: Int, _ answer: any Sendable)
  /// The request had no effect, or one that is safe to repeat: park what needs it.
  func registryFailed(_ tag: Int, _ error: RegistryError)
  /// From now on requests are refused at once with this error, until `registryAvailable`.
  func registryUnavailable(_ error: RegistryError)
  func registryAvailable()
  /// Writes of one kind fail while look-ups go on, until it is called without a fault.
  func registryWritesChanged(_ kind: WriteKind, _ fault: RegistryError?)
}

/// A shard's way to its registry.
public protocol RegistryDoor: AnyObject {
  /// Requests under way.
  var waiting: Int { get }
  /// Has a request answered under `tag` in a later turn, in the order of the requests.
  /// - Throws: at once when the registry is unavailable, too slow or has too much to do. Nothing was sent then.
  func submit(_ request: RegistryRequest, tag: Int) throws(RegistryError)
  /// Changes that were submitted and aren't begun fail: whoever they came from gives them to somebody else.
  func withdrawChanges()
  /// What was submitted before is still done; no answer is reported any more.
  func close()
}

/// How much a shard may ask of its registry at a time.
public struct RegistryOptions: Sendable {
  /// Requests under way before the next one is refused.
  public var mostWaiting = 4_096
  /// Seconds without an answer to any of the requests under way after which the next one is refused: more than one statement may take.
  public var slowAfter = 3.0
  /// Seconds between attempts to come back.
  public var backoff = Backoff(base: 0.1, cap: 10)
  public var store = StoreOptions(statementTimeout: 2_000, lockTimeout: 500)

  public init() {}
}

/// A shard's way to its registry: requests go to a thread of their own, answers come back through the loop's mailbox, and the loop
/// never waits for a database.
///
/// Opens by itself and comes back by itself. While the database is full, damaged, down or slow, requests are refused at once with the
/// reason, so that what needs no registry goes on undisturbed; while somebody holds a lock, only writes are. Confined to the loop's thread.
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
  /// When each request under way was submitted: they are answered in order.
  private var submitted = Ring<MonotonicTime>()
  /// Submitted in this turn of the loop: what comes together is handed over together, and shares transactions.
  private var gathered: [StoreThread.Job] = []
  private var progressedAt = MonotonicTime(nanoseconds: 0)
  private var era = 0
  private var changeEra = 0

  /// - Throws: when there is no thread to be had. What is wrong with the registry itself comes to the handler.
  public init(
    _ location: RegistryLocation, loop: EventLoop, handler: any RegistryHandler, options: RegistryOptions = RegistryOptions(),
    limits: RegistryLimits = RegistryLimits()
  ) throws(SystemError) {
    self.loop = loop
    self.handler = handler
    self.options = options
    thread = StoreThread(mailbox: loop.mailbox, backoff: options.backoff) { isFirst throws(RegistryError) in
      // One that was there and is gone isn't made again: every registration would be unknown.
      var store = options.store
      store.create = store.create && isFirst
      return try openRegistry(location, options: store, limits: limits)
    }
    thread.front.registry = self
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

  /// Ends the thread after what was submitted before.
  public func close() {
    condition = .closed
    handler = nil
    handOver()
    thread.close()
  }

  // MARK: From the thread, on the loop

  func completed(_ completions: [StoreThread.Completion]) {
    for _ in completions { _ = submitted.popFirst() }
    for completion in completions {
      switch completion.result {
      case .success(let answer):
        progressedAt = loop.now
        handler?.registryAnswered(completion.tag, answer)
      case .failure(let error): handler?.registryFailed(completion.tag, error)
      }
    }
  }

  /// A change has failed, and those before this era with it: later ones may be applied.
  func changesFailed(_ era: Int) { changeEra = max(changeEra, era) }

  func writesChanged(_ kind: WriteKind, fault: RegistryError?) {
    guard condition != .closed else { return }
    handler?.registryWritesChanged(kind, fault)
  }

  func becameAvailable(_ era: Int) {
    self.era = era
    guard condition != .closed, condition != .available else { return }
    condition = .available
    handler?.registryAvailable()
  }

  func becameUnavailable(_ error: RegistryError) {
    guard condition != .closed else { return }
    let isNews = condition != .unavailable(error)
    condition = .unavailable(error)
    if isNews { handler?.registryUnavailable(error) }
  }
}
