import PushCore
import Reactor

/// What a simulator asks of the place it runs in: the time of day, and to be called later. A test owns both.
public struct SimulatorEnvironment {
  /// Unix time in milliseconds.
  public var wallClock: () -> Int64
  /// Calls the closure once, after so many seconds, on the simulator's own thread.
  public var later: (Double, @escaping () -> Void) -> Void

  /// Ids and access tokens are made of it.
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
