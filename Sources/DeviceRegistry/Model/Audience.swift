import PushCore

public enum Audience: Equatable, Sendable {
  case topic([UInt8])
  case condition(Condition)
  case all
  case group([UInt8])
  case user([UInt8])
}

/// Facts about an audience, determined before the first page.
public struct AudienceEstimate: Equatable, Sendable {
  /// False for a topic, group or user that was never created, and for a condition whose topics were never created.
  public var exists: Bool
  /// Number of devices: exact up to about 100,000, extrapolated above; an upper bound for a condition.
  public var estimate: Int64
  /// The application's device numbers are above `lowWater` and at present up to `highWater`. Later devices aren't part of a
  /// campaign that begins now.
  public var lowWater: Int64 = 0
  public var highWater: Int64 = 0
}

/// One page of an audience, by ascending device number.
public struct AudiencePage: Sendable {
  /// Devices to send to, none of them gone. Pages before the last one may also be short or empty.
  public var devices: DeviceRows
  public var next: Int64
  public var isLast: Bool

  public init(devices: DeviceRows, next: Int64, isLast: Bool) {
    self.devices = devices
    self.next = next
    self.isLast = isLast
  }
}

public enum ResolvedRegistration: Equatable, Sendable {
  /// Index in ``Resolution/devices``. Not canonical: an older registration; replace it by ``DeviceRows/registration(_:)``.
  case device(Int, isCanonical: Bool)
  /// The devices of a user, device group or topic, without gone ones. Empty if it is unknown or exceeds ``mostDevices``.
  case devices([Int])
  /// Never issued, of another app, or removed long ago.
  case unknown

  /// Maximum devices of one user, group or topic in a list. A larger one must be sent to as an audience.
  static let mostDevices = 100
}

/// A registration, or a list's user, device group or topic in target form, to look up.
public struct LookUp: Equatable, Sendable {
  public var app: [UInt8]
  public var registration: [UInt8]
  /// The kind of tokens to send to: the registration's or, if it differs, its installation's. Nil for the registration itself.
  public var kind: TokenKind?

  public init(app: [UInt8], registration: [UInt8], kind: TokenKind? = nil) {
    self.app = app
    self.registration = registration
    self.kind = kind
  }
}

/// The devices of a list of registrations. A device that is named twice is in it once.
public struct Resolution: Sendable {
  public var devices = DeviceRows()
  /// One entry per look-up, in order.
  public var entries: [ResolvedRegistration] = []
}
