/// Everything that one `POST /3/device/<token>` needs. Each value is fit for a header field: no CR, LF or NUL, bounded (F-71).
public struct APNsPush: Sendable {
  /// For the path: hexadecimal digits. Differs from the token it was stamped with when the request names a `live_activity_token`; then
  /// what APNs says of it concerns the activity, not the device.
  public var token: [UInt8]
  public var topic: [UInt8]
  public var pushType: [UInt8]
  /// 1, 5 or 10.
  public var priority: Int
  /// Unix seconds; 0: one attempt, nothing stored.
  public var expiration: Int64
  /// 1 to 64 bytes.
  public var collapseID: [UInt8]?
  /// A canonical UUID, the same for every attempt.
  public var id: [UInt8]
  public var payload: [UInt8]
}
