import PushCore

/// The complete record of a device, for commands.
public struct DeviceRecord: Equatable, Sendable {
  public var id: Int64
  public var registration: [UInt8]
  /// In the form of ``RegistryChange/register(_:)``.
  public var device: Registration
  public var state: DeviceState
  public var reason: [UInt8]?
  /// Unix milliseconds.
  public var registeredAt: Int64
  public var lastSeen: Int64
  /// Since when the device isn't active; nil if it is.
  public var markedAt: Int64?
  /// Nil if nothing has counted it.
  public var badge: Int64?
}

public struct CampaignPage: Equatable, Sendable {
  public var number: Int64
  public var isDone: Bool
  /// Numbers of devices. For a page that isn't done, those of earlier rounds.
  public var sent: Int64
  public var failed: Int64
}

/// When a device acknowledged a message, in Unix milliseconds; nil if it did not.
public struct AcknowledgementTimes: Equatable, Sendable {
  public var received: Int64?
  public var read: Int64?

  public var isEmpty: Bool { received == nil && read == nil }
}

public struct DeviceCount: Equatable, Sendable {
  public var app: [UInt8]
  public var platform: Platform
  public var kind: TokenKind
  public var state: DeviceState
  public var count: Int64
}

public struct StaleDevices: Equatable, Sendable {
  public var devices: [DeviceRecord]
  /// Where to continue; nil at the end.
  public var next: Int64?
}

public struct TopicRecord: Equatable, Sendable {
  public var name: [UInt8]
  public var members: Int64
}

public struct GroupRecord: Equatable, Sendable {
  public var notificationKey: [UInt8]
  public var name: [UInt8]
  public var devices: [[UInt8]]
  /// User ids of a user group; nil for a device group.
  public var users: [[UInt8]]?
  /// Unix milliseconds.
  public var createdAt: Int64
}
