/// Number of devices of an audience that failed with the same code on the same platform.
public struct FailureCount: Equatable, Sendable {
  /// Nil if the devices are no longer registered.
  public var platform: Platform?
  public var error: PushError
  public var devices: Int64
}

extension [FailureCount] {
  public mutating func add(_ error: PushError, on platform: Platform?, devices: Int64 = 1) {
    guard devices > 0 else { return }
    if let place = firstIndex(where: { $0.error == error && $0.platform == platform }) {
      self[place].devices += devices
    } else {
      append(FailureCount(platform: platform, error: error, devices: devices))
    }
  }
}
