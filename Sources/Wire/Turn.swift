/// The time and randomness of one thread: the clocks at the start of the current turn, timers, random numbers. An event loop
/// advances it by real clocks, a simulation by virtual ones. Confined to its thread.
public final class Turn {
  /// The monotonic clock at the start of the turn.
  public private(set) var now: MonotonicTime
  /// Unix milliseconds at the start of the turn.
  public private(set) var wallClock: Int64
  public var random: RandomSource
  private var timers = TimerHeap()
  private var isBeforeHooks = false
  /// True if another turn must follow at once.
  public private(set) var isAnotherDue = false

  public init(now: MonotonicTime, wallClock: Int64, random: RandomSource = RandomSource()) {
    self.now = now
    self.wallClock = wallClock
    self.random = random
  }

  // MARK: Timers

  /// Runs `body` once, `seconds` after `now`. Timers with the same deadline run in the order they were scheduled.
  @discardableResult
  public func schedule(after seconds: Double, _ body: @escaping () -> Void) -> TimerToken {
    timers.schedule(at: now.advanced(bySeconds: seconds), body)
  }

  @discardableResult
  public func schedule(at deadline: MonotonicTime, _ body: @escaping () -> Void) -> TimerToken {
    timers.schedule(at: deadline, body)
  }

  /// Releases the timer's closure at once. Does nothing if the timer has fired.
  public func cancel(_ token: TimerToken) { timers.cancel(token) }

  // MARK: Requests to the loop

  /// Makes the hooks at a turn's end run again: in this turn, or in another turn that follows at once.
  public func ensureHooksRun() { if !isBeforeHooks { isAnotherDue = true } }

  public func requestAnother() { isAnotherDue = true }

  // MARK: For the loop

  /// `distantFuture` if there is no timer.
  public var nextTimer: MonotonicTime { timers.nextDeadline }

  public func refresh(now: MonotonicTime) { self.now = now }

  public func begin(now: MonotonicTime, wallClock: Int64) {
    self.now = now
    self.wallClock = wallClock
    isAnotherDue = false
    isBeforeHooks = true
  }

  /// Runs the timers that are due and were scheduled before this call.
  public func runTimers() {
    let horizon = timers.horizon
    while let body = timers.popDue(at: now, before: horizon) { body() }
  }

  /// The hooks at the turn's end are about to run.
  public func endsEvents() { isBeforeHooks = false }
}
