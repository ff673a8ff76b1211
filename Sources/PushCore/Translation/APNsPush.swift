/// Everything that one `POST /3/device/<token>`, or `POST /4/broadcasts/apps/<bundle ID>`, needs. Each value is fit for a header field: no CR, LF or NUL, bounded.
public struct APNsPush: Sendable {
  /// The translation that it shares with the pushes to the request's other devices: all but `token` and `id`.
  public let template: APNsTemplate
  /// The token of the device that it is for, or the channel's id.
  let device: ArraySlice<UInt8>
  let fill: DeviceFill

  /// For the path: hexadecimal digits. Differs from the device's when the request names a `live_activity_token`; then what APNs
  /// says of it concerns the activity, not the device.
  public var token: ArraySlice<UInt8> { if let activity = template.activityToken { activity[...] } else { device } }
  /// Appends `token` without holding on to it.
  public func appendToken(to bytes: inout [UInt8]) {
    if let activity = template.activityToken { bytes += activity } else { bytes += device }
  }
  /// The channel that a broadcast goes to.
  public var channel: ArraySlice<UInt8> { device }
  public var topic: [UInt8] { template.topic }
  public var pushType: [UInt8] { template.pushType.word }
  /// 1, 5 or 10.
  public var priority: Int { template.priority }
  /// Unix seconds; 0: one attempt, nothing stored.
  public var expiration: Int64 { template.expiration }
  /// 1 to 64 bytes.
  public var collapseID: [UInt8]? { template.collapseID }
  /// A canonical UUID, the same for every attempt; made when asked for.
  public var id: [UInt8] { template.fixedID ?? template.identity.apnsID(token: device.span) }
  public func appendID(to bytes: inout [UInt8]) {
    if let id = template.fixedID { bytes += id } else { template.identity.appendAPNsID(token: device.span, to: &bytes) }
  }
  public var payload: [UInt8] { template.payload(for: fill, token: device) }
}
