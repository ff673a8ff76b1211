/// Limits of the registry (GCM and FCM references, "Sizes and limits").
public struct RegistryLimits: Sendable, Equatable {
  public var groupMembers = 20
  public var groupUsers = 100_000
  public var topicsPerDevice = 2_000
  /// Tokens in one subscribe or unsubscribe change.
  public var batch = 1_000
  /// Senders of one installation (rule GS-084).
  public var sendersPerInstallation = 100
  public var devicesPerUser = 100
  /// Stored live activities of one installation. A new one replaces the oldest.
  public var activitiesPerInstallation = 50

  public init() {}
}
