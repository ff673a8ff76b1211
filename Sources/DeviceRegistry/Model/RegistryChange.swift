import PushCore

/// A device's registration. A nil value keeps the earlier value; topics are added to the existing ones.
public struct Registration: Equatable, Sendable {
  public var app: [UInt8]
  public var platform: Platform
  /// Of web push: with the id of the VAPID key if the registration names the key.
  public var token: [UInt8]
  /// The VAPID key of a new subscription that names none, 8 bytes.
  var newKeyID = WebPushSubscription.noKeyID
  /// The caller's id of the installation. A new token replaces its earlier one.
  public var installation: [UInt8]?
  public var environment: DeviceEnvironment?
  public var sender: [UInt8]?
  public var user: [UInt8]?
  public var name: [UInt8]?
  public var locale: [UInt8]?
  public var timeZone: [UInt8]?
  public var appVersion: [UInt8]?
  public var topics: [[UInt8]] = []
  /// The purpose of the token; nil keeps the earlier one (at first: alerts).
  public var kind: TokenKind?
  public var activity: [UInt8]?
  /// When the provider issued the token, in Unix milliseconds; nil if only the arrival of the change is known.
  public var registeredAt: Int64?

  public init(app: [UInt8], platform: Platform, token: [UInt8]) {
    self.app = app
    self.platform = platform
    self.token = token
  }

  func registered(by now: Int64) -> Int64 { min(registeredAt ?? now, now) }
}

public enum DeviceReference: Equatable, Sendable {
  case token(Platform, [UInt8])
  case registration([UInt8])
  /// All registrations of an installation: one per sender.
  case installation([UInt8])
  /// A text that can't name a device.
  case invalid

  /// Reads a provider token or a registration, by its form; nil if it is neither.
  public init?(text: [UInt8]) {
    self = ChangeField.device(text)
    if self == .invalid { return nil }
  }
}

public enum GroupMembers: Equatable, Sendable {
  case devices([DeviceReference])
  /// User ids. The group reaches the devices that each user has at the time of sending.
  case users([[UInt8]])
}

public enum GroupReference: Equatable, Sendable {
  case key([UInt8])
  case name([UInt8])
}

/// A change of the registry (docs/schema/registry-change.schema.json).
public enum RegistryChange: Equatable, Sendable {
  case register(Registration)
  case unregister(app: [UInt8], DeviceReference)
  /// Unbinds the user from a device, which stays registered.
  case unregisterUser(app: [UInt8], DeviceReference)
  case subscribe(app: [UInt8], topic: [UInt8], [DeviceReference])
  case unsubscribe(app: [UInt8], topic: [UInt8], [DeviceReference])
  case groupCreate(app: [UInt8], name: [UInt8], GroupMembers)
  /// If the name is given, it must be the key's.
  case groupAdd(app: [UInt8], key: [UInt8], name: [UInt8]?, GroupMembers)
  case groupRemove(app: [UInt8], key: [UInt8], name: [UInt8]?, GroupMembers)
  case groupJoin(app: [UInt8], GroupReference, DeviceReference)
  case groupLeave(app: [UInt8], GroupReference, DeviceReference)
  /// A change that may already have been applied, with its answer lost. It gets the same answer again.
  indirect case repeated(RegistryChange)

  public var asRepeated: RegistryChange {
    if case .repeated = self { self } else { .repeated(self) }
  }

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
