import PushCore

/// A device that a campaign didn't reach.
public struct UnreachedDevice: Equatable, Sendable {
  public var id: Int64
  public var salt: Int64
  public var error: PushError
  /// The device as it is now; nil if it has been deleted.
  public internal(set) var state: DeviceState?
  public internal(set) var platform: Platform?
  public internal(set) var user: [UInt8]?
  public internal(set) var installation: [UInt8]?
  public internal(set) var registeredAt: Int64?

  public init(id: Int64, salt: Int64, error: PushError) {
    self.id = id
    self.salt = salt
    self.error = error
  }

  public var registration: [UInt8] { DeviceRows.registration(id: id, salt: salt) }

  public var json: JSONObject {
    [
      "number": id, "registration": registration, "error": error.rawValue, "platform": platform?.word,
      "state": state.map { "\($0)" } ?? "deleted", "user": user, "installation": installation,
      "registered_at": registeredAt.map(Timestamp.text),
    ]
  }
}
