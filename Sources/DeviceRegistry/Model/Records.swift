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
  /// Since when it isn't active; nil for one that is.
  public var markedAt: Int64?
}

/// A page of a campaign, as it was opened or reported.
public struct CampaignPage: Equatable, Sendable {
  /// From 0.
  public var number: Int64
  public var isDone: Bool
  /// Devices of the page; of one that isn't done, those of earlier rounds.
  public var sent: Int64
  public var failed: Int64
}

/// When a device acknowledged a message, in Unix milliseconds; nil where it did not.
public struct AcknowledgementTimes: Equatable, Sendable {
  public var received: Int64?
  public var read: Int64?

  public var isEmpty: Bool { received == nil && read == nil }
}

/// Devices that are alike.
public struct DeviceCount: Equatable, Sendable {
  public var app: [UInt8]
  public var platform: Platform
  public var kind: TokenKind
  public var state: DeviceState
  public var count: Int64
}

/// Where devices are looked for that haven't registered for long. Times are Unix milliseconds.
public struct StaleSearch: Equatable, Sendable {
  /// A device's number, 0 at first.
  public var after: Int64
  /// Devices to look at.
  public var portion: Int
  public var seenBefore: Int64
  /// A claim that is older doesn't count.
  public var claimedBefore: Int64
  public var limit: Int

  public init(after: Int64, portion: Int, seenBefore: Int64, claimedBefore: Int64, limit: Int) {
    self.after = after
    self.portion = portion
    self.seenBefore = seenBefore
    self.claimedBefore = claimedBefore
    self.limit = limit
  }
}

/// Devices that are the caller's to be fed back.
public struct StaleDevices: Equatable, Sendable {
  public var devices: [DeviceRecord]
  /// Where to go on; nil at the end.
  public var next: Int64?
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
