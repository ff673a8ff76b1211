/// What the code of one thread knows of time and chance: the clocks as the thread's present turn began, its timers, random numbers.
///
/// A loop moves it on by real clocks, a simulation by virtual ones; whoever is given a turn can't tell which. Confined to its thread.
public final class Turn {
  /// The monotonic clock as the turn began.
  public private(set) var now: MonotonicTime
  /// Unix time in milliseconds as the turn began.
  public private(set) var wallClock: Int64
  public var random: RandomSource
  private var timers = TimerHeap()
  private var isBeforeHooks = false
  /// Another turn is to follow this one at once.
  public private(set) var isAnotherDue = false

  public init(now: MonotonicTime, wallClock: Int64, random: RandomSource = RandomSource()) {
    self.now = now
    self.wallClock = wallClock
    self.random = random
  }

  // MARK: timers

  /// Runs `body` once, `seconds` after `now`; timers of one deadline run in the order they were scheduled.
  @discardableResult
  public func schedule(after seconds: Double, _ body: @escaping () -> Void) -> TimerToken {
    timers.schedule(at: now.advanced(bySeconds: seconds), body)
  }

  @discardableResult
  public func schedule(at deadline: MonotonicTime, _ body: @escaping () -> Void) -> TimerToken {
    timers.schedule(at: deadline, body)
  }

  /// Releases the timer's closure at once; does nothing when it has fired already.
  public func cancel(_ token: TimerToken) { timers.cancel(token) }

  // MARK: asked of whoever moves it on

  /// Has what runs at a turn's end run again: in this turn, or, when that is over, in one that follows at once.
  public func ensureHooksRun() { if !isBeforeHooks { isAnotherDue = true } }

  /// Has another turn follow this one at once.
  public func requestAnother() { isAnotherDue = true }

  // MARK: for whoever moves it on

  /// `distantFuture` when there is no timer.
  public var nextTimer: MonotonicTime { timers.nextDeadline }

  /// Reads the clocks without beginning a turn.
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

  /// What runs at the turn's end begins to.
  public func endsEvents() { isBeforeHooks = false }
}
