/// Bounds on what the registry takes (GCM and FCM references, "Sizes and limits").
public struct RegistryLimits: Sendable, Equatable {
  /// Members of a device group.
  public var groupMembers = 20
  /// Users of a user group.
  public var groupUsers = 100_000
  public var topicsPerDevice = 2_000
  /// Tokens in one subscribe or unsubscribe.
  public var batch = 1_000
  /// Senders of one installation (rule GS-084).
  public var sendersPerInstallation = 100
  public var devicesPerUser = 100
  /// Live activities of one installation whose tokens are kept; the oldest goes for a new one.
  public var activitiesPerInstallation = 50

  public init() {}
}
