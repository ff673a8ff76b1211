import Wire

/// Called at the end of each turn of a loop, before the links flush: the place to batch what a turn brought.
public protocol TurnHook: AnyObject {
  func turnEnding(at now: MonotonicTime)
}

/// Something with a descriptor that the loop waits for.
protocol EventSource: AnyObject {
  func ready(_ readiness: Readiness)
}

/// Names a watched descriptor. The generation keeps an event of a descriptor that was closed earlier in the same turn
/// from reaching whoever owns its number next.
struct Watch {
  fileprivate let slot: UInt32
  fileprivate let generation: UInt32
  fileprivate var key: UInt64 { UInt64(generation) << 32 | UInt64(slot) }
}

/// One thread's loop: descriptors by epoll, timers, a mailbox for other threads, and one flush of the links a turn.
///
/// A turn is: wait, read the clocks, events (the mailbox is one), timers, hooks, flush. Events come before timers, so that
/// after a stall what the peers sent meanwhile is heard before they are found silent. Everything that hangs on a loop is
/// confined to the thread that runs it, except `mailbox`. The loop owns its open links and listeners, nothing owns a loop
/// but whoever made it: keep it longer than what was made with it.
public final class EventLoop {
  /// The clocks, the timers and the random numbers, for what may also run without a loop.
  public let time: Turn
  /// The way in from other threads.
  public let mailbox: Mailbox

  let readBuffer = ReadBuffer(capacity: 16 * 1024)
  private let poller: Poller
  private var slots: [(source: (any EventSource)?, generation: UInt32)] = []
  private var freeSlots: [UInt32] = []
  private var hooks: [WeakHook] = []
  private var closingHooks: [any TurnHook] = []
  private var dirty: [Link] = []
  private var flushing: [Link] = []
  private var resuming: [Link] = []
  private var owned: [ObjectIdentifier: AnyObject] = [:]
  private var resolutions: [Int: (Resolution) -> Void] = [:]
  private var nextResolution = 0
  /// Who waits at a gate, by ticket.
  private var admissions: [Int: () -> Void] = [:]
  public private(set) var isInTurn = false
  private var isStopping = false

  /// - Throws: when the process is out of descriptors.
  public init() throws(SystemError) {
    BrokenPipe.ignore()
    poller = try Poller()
    mailbox = try Mailbox()
    time = Turn(now: Clock.monotonic(), wallClock: Clock.wall())
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

  /// Ends `run` once the current turn is complete, its flush included. From another thread: `mailbox.post { $0.stop() }`.
  public func stop() { isStopping = true }

  /// One turn, waiting at most so many seconds for something to happen.
  public func turn(waitingAtMost limit: Double) {
    let count = poller.wait(milliseconds: time.isAnotherDue ? 0 : milliseconds(limit))
    isInTurn = true
    defer { isInTurn = false }
    time.begin(now: Clock.monotonic(), wallClock: Clock.wall())
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

  /// The monotonic clock as this turn began.
  public var now: MonotonicTime { time.now }
  /// Unix time in milliseconds as this turn began.
  public var wallClock: Int64 { time.wallClock }

  /// Has another turn follow this one at once, so that hooks see what the flush brought up.
  func requestTurn() { time.requestAnother() }

  private func milliseconds(_ limit: Double) -> Int32 {
    let deadline = time.nextTimer
    var seconds = limit
    if deadline != .distantFuture { seconds = min(seconds, max(0, deadline.seconds(since: Clock.monotonic()))) }
    return seconds < 1e6 ? Int32((seconds * 1000).rounded(.up)) : -1
  }

  // MARK: Timers

  /// Runs `body` once, `seconds` after this turn's `now` (outside a turn: after the call); timers of one deadline run in the order they were scheduled.
  @discardableResult
  public func schedule(after seconds: Double, _ body: @escaping () -> Void) -> TimerToken {
    if !isInTurn { time.refresh(now: Clock.monotonic()) }
    return time.schedule(after: seconds, body)
  }

  @discardableResult
  public func schedule(at deadline: MonotonicTime, _ body: @escaping () -> Void) -> TimerToken {
    time.schedule(at: deadline, body)
  }

  /// Releases the timer's closure at once; does nothing when it has fired already.
  public func cancel(_ token: TimerToken) { time.cancel(token) }

  // MARK: Hooks and mail

  /// Calls the hook, held weakly, at the end of every turn from now on, in the order the hooks were added.
  public func afterEvents(_ hook: any TurnHook) { hooks.append(WeakHook(hook: hook)) }

  /// Calls the hook once, when all others have been called at the end of this turn; at the end of the next one where that is too late.
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

  /// To be called before the descriptor is closed.
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

  /// How many links, listeners and connectors are open: for tests.
  public var openCount: Int { owned.count }

  func flushThisTurn(_ link: Link) { dirty.append(link) }

  /// For a link that has used up its share of this turn.
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

  /// Links may mark each other while they flush; a pair that never falls silent goes on in the next turn.
  private func flushLinks() {
    for _ in 0..<Self.flushRounds where !dirty.isEmpty {
      swap(&dirty, &flushing)
      for link in flushing { link.settle() }
      flushing.removeAll(keepingCapacity: true)
    }
    if !dirty.isEmpty { time.requestAnother() }
  }

  // MARK: Names

  /// Resolves off the thread; the answer comes in a later turn unless `forget` is called before.
  func resolve(_ endpoint: Endpoint, _ answer: @escaping (Resolution) -> Void) -> Int {
    let id = nextResolution
    nextResolution += 1
    resolutions[id] = answer
    Resolver.shared.ask(endpoint) { [mailbox] resolution in
      mailbox.post { loop in loop.resolutions.removeValue(forKey: id)?(resolution) }
    }
    return id
  }

  func forget(resolution id: Int) { resolutions[id] = nil }

  // MARK: Gates

  /// Calls `admitted` within this call, or in a later turn unless `forget` is called before. The place goes with the ticket.
  func enter(_ gate: DialGate, _ endpoint: Endpoint, _ admitted: @escaping () -> Void) -> DialGate.Ticket {
    let (ticket, isAdmitted) = gate.enter(endpoint) { [mailbox] id in
      mailbox.post { loop in loop.admissions.removeValue(forKey: id)?() }
    }
    if isAdmitted { admitted() } else { admissions[ticket.id] = admitted }
    return ticket
  }

  func forget(_ ticket: DialGate.Ticket) { admissions[ticket.id] = nil }

  private struct WeakHook { weak var hook: (any TurnHook)? }

  /// Slot 0 of `slots` stands for the mailbox and is never given out.
  private static let mailboxKey: UInt64 = 0
  private static let lettersPerTurn = 256
  private static let flushRounds = 8
}
