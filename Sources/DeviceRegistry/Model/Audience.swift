import PushCore

/// Many devices under one name.
public enum Audience: Equatable, Sendable {
  case topic([UInt8])
  case condition(Condition)
  /// Every device of the application.
  case all
  /// A notification key.
  case group([UInt8])
  /// A user's id.
  case user([UInt8])
}

/// What is known of an audience before the first page.
public struct AudienceSurvey: Equatable, Sendable {
  /// False for a topic, group or user that was never made, and for a condition none of whose topics was.
  public var exists: Bool
  /// How many devices, exact below some 100,000 and extrapolated above; for a condition a bound from above.
  public var estimate: Int64
  /// The highest device number of the moment: devices that come later aren't part of a campaign begun now.
  public var highWater: Int64
}

/// One page of an audience, in ascending order of device numbers.
public struct AudiencePage: Sendable {
  /// Devices to send to: none is gone. May be fewer than the limit, or none, before the last page.
  public var devices: DeviceRows
  /// The cursor after which the next page begins.
  public var next: Int64
  /// No device of the audience comes after this page.
  public var isLast: Bool

  public init(devices: DeviceRows, next: Int64, isLast: Bool) {
    self.devices = devices
    self.next = next
    self.isLast = isLast
  }
}

/// The device that a registration stands for.
public enum ResolvedRegistration: Equatable, Sendable {
  /// Index into ``Resolution/devices``. Not canonical: the registration is an older one of that device, and whoever keeps it is to
  /// replace it by ``DeviceRows/registration(_:)``.
  case device(Int, isCanonical: Bool)
  /// The devices of a user, device group or topic that aren't gone; none when there is no such, or it has more than ``mostDevices``.
  case devices([Int])
  /// Never issued, of another app, or removed long ago.
  case unknown

  /// Of one user, group or topic among others in a list; a larger one is an audience of its own.
  static let mostDevices = 100
}

/// A registration, or a list's user, device group or topic as a target names it, to be looked up.
public struct LookUp: Equatable, Sendable {
  public var app: [UInt8]
  public var registration: [UInt8]
  /// What is sent to: where the registration is of another kind, the tokens of its installation that are. Nil for the registration as it is.
  public var kind: TokenKind?

  public init(app: [UInt8], registration: [UInt8], kind: TokenKind? = nil) {
    self.app = app
    self.registration = registration
    self.kind = kind
  }
}

/// The devices of a list of registrations; a device named twice stands there once.
public struct Resolution: Sendable {
  public var devices = DeviceRows()
  /// One for each registration asked for, in that order.
  public var entries: [ResolvedRegistration] = []
}
