import Wire

/// Called at the end of each turn of a loop, before the links flush. Use it to batch the work of a turn.
public protocol TurnHook: AnyObject {
  func turnEnding(at now: MonotonicTime)
}

protocol EventSource: AnyObject {
  func ready(_ readiness: Readiness)
}

/// Identifies a watched descriptor. If its number is reused in the same turn, the generation drops old events.
struct Watch {
  fileprivate let slot: UInt32
  fileprivate let generation: UInt32
  fileprivate var key: UInt64 { UInt64(generation) << 32 | UInt64(slot) }
}

/// The event loop of one thread: descriptors by epoll, timers, a mailbox for other threads, one flush of the links a turn.
///
/// A turn: wait, read the clocks, events (including the mailbox), timers, hooks, flush. Events come before timers: after a
/// stall, received bytes are read before a peer counts as silent. Everything that belongs to a loop is confined to its thread,
/// except `mailbox`. The loop owns its open links and listeners. The loop must outlive the objects made with it.
public final class EventLoop {
  /// Clocks, timers and random numbers, for code that can also run without a loop.
  public let time: Turn
  public let mailbox: Mailbox

  /// Replaces the resolvers of the process in tests.
  var resolver: Resolver?
  let readBuffer = ReadBuffer(capacity: 16 * 1024)
  private let poller: Poller
  private var slots: [(source: (any EventSource)?, generation: UInt32)] = []
  private var freeSlots: [UInt32] = []
  private var hooks: [WeakHook] = []
  private var closingHooks: [any TurnHook] = []
  private var dirty: [Link] = []
  private var flushing: [Link] = []
  private var resuming: [Link] = []
  private(set) var owned: [ObjectIdentifier: AnyObject] = [:]
  private var resolutions: [Int: (Resolution) -> Void] = [:]
  private var nextResolution = 0
  /// Callbacks that wait at a limiter, by ticket.
  private var admissions: [Int: () -> Void] = [:]
  public private(set) var isInTurn = false
  private var isStopping = false

  /// - Throws: if the process is out of descriptors.
  public init() throws(SystemError) {
    Signals.ignoreBrokenPipe()
    poller = try Poller()
    mailbox = try Mailbox()
    time = Turn(now: SystemClock.monotonic, wallClock: SystemClock.unixMilliseconds)
    slots.append((nil, 0))
    try poller.add(mailbox.wakeup, .input, key: Self.mailboxKey)
  }

  deinit { mailbox.close() }

  // MARK: Running

  /// Runs turns until `stop`. May be called again afterwards.
  public func run() {
    isStopping = false
    while !isStopping { turn(waitingAtMost: .infinity) }
  }

  /// Ends `run` after the current turn, including its flush. From another thread: `mailbox.post { $0.stop() }`.
  public func stop() { isStopping = true }

  /// - Parameter limit: the longest wait for an event, in seconds.
  public func turn(waitingAtMost limit: Double) {
    let count = poller.wait(milliseconds: time.isAnotherDue ? 0 : milliseconds(limit))
    isInTurn = true
    defer { isInTurn = false }
    time.begin(now: SystemClock.monotonic, wallClock: SystemClock.unixMilliseconds)
    for index in 0..<count {
      let event = poller.event(at: index)
      if event.key == Self.mailboxKey { openMail() } else { dispatch(event.key, event.readiness) }
    }
    resumeLinks()
    time.runTimers()
    time.endsEvents()
    runHooks()
    flushLinks()
    if !closingHooks.isEmpty { time.requestAnother() }
  }

  public var now: MonotonicTime { time.now }
  /// Unix milliseconds at the start of this turn.
  public var wallClock: Int64 { time.wallClock }

  private func milliseconds(_ limit: Double) -> Int32 {
    let deadline = time.nextTimer
    var seconds = limit
    if deadline != .distantFuture { seconds = min(seconds, max(0, deadline.seconds(since: SystemClock.monotonic))) }
    return seconds < 1e6 ? Int32((seconds * 1000).rounded(.up)) : -1
  }

  // MARK: Timers

  /// Runs `body` once, `seconds` after this turn's `now` (outside of a turn: after the call). Timers with the same deadline run
  /// in the order they were scheduled.
  @discardableResult
  public func schedule(after seconds: Double, _ body: @escaping () -> Void) -> TimerToken {
    if !isInTurn { time.refresh(now: SystemClock.monotonic) }
    return time.schedule(after: seconds, body)
  }

  /// Releases the timer's closure at once. Does nothing if the timer has fired.
  public func cancel(_ token: TimerToken) { time.cancel(token) }

  // MARK: Hooks and mail

  /// Calls the hook at the end of every turn, in the order the hooks were added. Holds it weakly.
  public func afterEvents(_ hook: any TurnHook) { hooks.append(WeakHook(hook: hook)) }

  /// Calls the hook once, after all others at the end of this turn; if that is too late, at the end of the next turn.
  public func atEndOfTurn(_ hook: any TurnHook) { closingHooks.append(hook) }

  private func runHooks() {
    var isGone = false
    for entry in hooks {
      if let hook = entry.hook { hook.turnEnding(at: now) } else { isGone = true }
    }
    if isGone { hooks.removeAll { $0.hook == nil } }
    while let hook = closingHooks.popLast() { hook.turnEnding(at: now) }
  }

  private func openMail() {
    for letter in mailbox.take(Self.lettersPerTurn) { letter(self) }
  }

  // MARK: Descriptors

  func watch(_ raw: Int32, _ interest: Readiness, _ source: any EventSource) throws(SystemError) -> Watch {
    let slot = freeSlots.popLast() ?? UInt32(slots.count)
    if slot == slots.count { slots.append((nil, 0)) }
    let watch = Watch(slot: slot, generation: slots[Int(slot)].generation)
    do throws(SystemError) { try poller.add(raw, interest, key: watch.key) } catch {
      freeSlots.append(slot)
      throw error
    }
    slots[Int(slot)].source = source
    return watch
  }

  func change(_ watch: Watch, _ raw: Int32, _ interest: Readiness) throws(SystemError) {
    try poller.modify(raw, interest, key: watch.key)
  }

  /// Call before the descriptor is closed.
  func unwatch(_ watch: Watch, _ raw: Int32) {
    poller.remove(raw)
    slots[Int(watch.slot)].source = nil
    slots[Int(watch.slot)].generation &+= 1
    freeSlots.append(watch.slot)
  }

  private func dispatch(_ key: UInt64, _ readiness: Readiness) {
    let slot = Int(key & 0xFFFF_FFFF)
    guard slots[slot].generation == UInt32(key >> 32), let source = slots[slot].source else { return }
    source.ready(readiness)
  }

  // MARK: Links

  /// Keeps an open link, listener or connector alive until `disown`.
  func own(_ object: AnyObject) { owned[ObjectIdentifier(object)] = object }
  func disown(_ object: AnyObject) { owned[ObjectIdentifier(object)] = nil }

  func flushThisTurn(_ link: Link) { dirty.append(link) }

  /// For a link that has used its share of this turn.
  func resumeNextTurn(_ link: Link) {
    resuming.append(link)
    time.requestAnother()
  }

  private func resumeLinks() {
    guard !resuming.isEmpty else { return }
    let links = resuming
    resuming = []
    for link in links { link.resume() }
  }

  /// Links may mark each other while they flush. If this doesn't end, they continue in the next turn.
  private func flushLinks() {
    for _ in 0..<Self.flushRounds where !dirty.isEmpty {
      swap(&dirty, &flushing)
      for link in flushing { link.settle() }
      flushing.removeAll(keepingCapacity: true)
    }
    if !dirty.isEmpty { time.requestAnother() }
  }

  // MARK: Names

  /// Resolves on another thread. The answer comes in a later turn, unless `forget` is called before.
  func resolve(_ endpoint: Endpoint, for policy: AddressPolicy, _ answer: @escaping (Resolution) -> Void) -> Int {
    let id = nextResolution
    nextResolution += 1
    resolutions[id] = answer
    let resolver = resolver ?? (policy == .publicOfStranger ? Resolver.ofStrangers : .shared)
    resolver.ask(endpoint) { [mailbox] resolution in
      mailbox.post { loop in loop.resolutions.removeValue(forKey: id)?(resolution) }
    }
    return id
  }

  func forget(resolution id: Int) { resolutions[id] = nil }

  // MARK: Gates

  /// Calls `admitted` within this call, or in a later turn unless `forget` is called before. The ticket holds the place.
  func enter(_ limiter: ConnectLimiter, _ endpoint: Endpoint, _ admitted: @escaping () -> Void) -> ConnectLimiter.Ticket {
    let (ticket, isAdmitted) = limiter.enter(endpoint) { [mailbox] id in
      mailbox.post { loop in loop.admissions.removeValue(forKey: id)?() }
    }
    if isAdmitted { admitted() } else { admissions[ticket.id] = admitted }
    return ticket
  }

  func forget(_ ticket: ConnectLimiter.Ticket) { admissions[ticket.id] = nil }

  private struct WeakHook { weak var hook: (any TurnHook)? }

  /// Slot 0 of `slots` is reserved for the mailbox.
  private static let mailboxKey: UInt64 = 0
  private static let lettersPerTurn = 256
  private static let flushRounds = 8
}
