import PushCore

/// All that the registry knows of a device, for commands.
public struct DeviceRecord: Equatable, Sendable {
  public var id: Int64
  public var registration: [UInt8]
  /// As ``RegistryChange/register(_:)`` would take it.
  public var device: Registration
  public var state: DeviceState
  public var reason: [UInt8]?
  /// Unix milliseconds.
  public var registeredAt: Int64
  public var lastSeen: Int64
}

public struct TopicRecord: Equatable, Sendable {
  public var name: [UInt8]
  public var members: Int64
}

public struct GroupRecord: Equatable, Sendable {
  public var notificationKey: [UInt8]
  public var name: [UInt8]
  /// Registrations of a device group.
  public var devices: [[UInt8]]
  /// Users' ids of a group of users, nil for a device group.
  public var users: [[UInt8]]?
  /// Unix milliseconds.
  public var createdAt: Int64
}
