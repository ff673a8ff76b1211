import PushCore

/// A device's registration. What is nil leaves an earlier value as it is; topics are added to those it has.
public struct Registration: Equatable, Sendable {
  public var app: [UInt8]
  public var platform: Platform
  public var token: [UInt8]
  /// The caller's own id of the installation: a new token replaces the one it had.
  public var installation: [UInt8]?
  public var environment: DeviceEnvironment?
  public var sender: [UInt8]?
  public var user: [UInt8]?
  /// The user's name.
  public var name: [UInt8]?
  public var locale: [UInt8]?
  public var timeZone: [UInt8]?
  public var appVersion: [UInt8]?
  public var topics: [[UInt8]] = []
  /// What the token is for; nil for what it was for before, at first for alerts.
  public var kind: TokenKind?
  /// Which live activity's token it is.
  public var activity: [UInt8]?
  /// When the provider gave out the token, in Unix milliseconds, where the caller knows better than the time at which the change arrives.
  public var registeredAt: Int64?

  public init(app: [UInt8], platform: Platform, token: [UInt8]) {
    self.app = app
    self.platform = platform
    self.token = token
  }

  /// `registeredAt`, or `now` where it is absent; never later than `now`.
  func registered(by now: Int64) -> Int64 { min(registeredAt ?? now, now) }
}

/// How a change names a device that is registered.
public enum DeviceReference: Equatable, Sendable {
  case token(Platform, [UInt8])
  case registration([UInt8])
  /// All of an installation's registrations: one a sender.
  case installation([UInt8])
  /// A text that can't be any device's.
  case invalid

  /// A provider's token or a registration, told apart by its form; nil for what can be neither.
  public init?(text: [UInt8]) {
    self = ChangeField.device(text)
    if self == .invalid { return nil }
  }
}

/// Whom a change of a group names.
public enum GroupMembers: Equatable, Sendable {
  case devices([DeviceReference])
  /// Users' ids: the group reaches the devices each of them has at the time of sending.
  case users([[UInt8]])
}

/// How a change names a group.
public enum GroupReference: Equatable, Sendable {
  case key([UInt8])
  case name([UInt8])
}

/// A change of the registry (docs/schema/registry-change.schema.json).
public enum RegistryChange: Equatable, Sendable {
  case register(Registration)
  case unregister(app: [UInt8], DeviceReference)
  /// Unbinds the user from a device; the device stays registered.
  case unregisterUser(app: [UInt8], DeviceReference)
  case subscribe(app: [UInt8], topic: [UInt8], [DeviceReference])
  case unsubscribe(app: [UInt8], topic: [UInt8], [DeviceReference])
  case groupCreate(app: [UInt8], name: [UInt8], GroupMembers)
  /// The name, where given, must be the key's.
  case groupAdd(app: [UInt8], key: [UInt8], name: [UInt8]?, GroupMembers)
  case groupRemove(app: [UInt8], key: [UInt8], name: [UInt8]?, GroupMembers)
  /// Adds the user of a device to a group of users, or takes it out.
  case groupJoin(app: [UInt8], GroupReference, DeviceReference)
  case groupLeave(app: [UInt8], GroupReference, DeviceReference)
  /// One that may have been applied before, and whose answer is lost: it is answered as it was then.
  indirect case repeated(RegistryChange)

  /// It, as one that may have been applied before.
  public var asRepeated: RegistryChange {
    if case .repeated = self { self } else { .repeated(self) }
  }

  /// The application that it concerns.
  public var app: [UInt8] {
    switch self {
    case .register(let registration): registration.app
    case .unregister(let app, _), .unregisterUser(let app, _), .subscribe(let app, _, _), .unsubscribe(let app, _, _),
      .groupCreate(let app, _, _), .groupAdd(let app, _, _, _), .groupRemove(let app, _, _, _), .groupJoin(let app, _, _),
      .groupLeave(let app, _, _):
      app
    case .repeated(let change): change.app
    }
  }
}
