import PushCore

/// A device that a campaign didn't reach.
public struct UnreachedDevice: Equatable, Sendable {
  public var id: Int64
  public var salt: Int64
  public var error: PushError
  /// The device as it is now; nil if it has been deleted.
  public internal(set) var record: DeviceRecord?

  public init(id: Int64, salt: Int64, error: PushError) {
    self.id = id
    self.salt = salt
    self.error = error
  }

  public var registration: [UInt8] { DeviceRows.registration(id: id, salt: salt) }

  public func write(to object: inout JSONObjectWriter) {
    object.set("number", id)
    object.set("registration", registration)
    object.set("error", error.rawValue)
    object.set("platform", record?.device.platform.word)
    object.set("state", record.map { "\($0.state)" } ?? "deleted")
    object.set("user", record?.device.user)
    object.set("installation", record?.device.installation)
  }
}
