import PushCore
import Reactor

/// The simulator's clock and timers. Tests can replace them.
public struct SimulatorEnvironment {
  /// Unix time in milliseconds.
  public var wallClock: () -> Int64
  /// Calls the closure once after this many seconds, on the simulator's thread.
  public var later: (Double, @escaping () -> Void) -> Void

  /// Makes ids and access tokens.
  public var makeUUID: () -> [UInt8]

  public init(
    wallClock: @escaping () -> Int64, later: @escaping (Double, @escaping () -> Void) -> Void,
    makeUUID: @escaping () -> [UInt8] = { UUIDText.random() }
  ) {
    self.wallClock = wallClock
    self.later = later
    self.makeUUID = makeUUID
  }

  public init(loop: EventLoop) {
    wallClock = { [unowned loop] in loop.wallClock }
    later = { [unowned loop] seconds, body in loop.schedule(after: seconds, body) }
    makeUUID = { UUIDText.random() }
  }
}
