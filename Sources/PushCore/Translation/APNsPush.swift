/// All values of one `POST /3/device/<token>` or `POST /4/broadcasts/apps/<bundle ID>`, each safe in a header field.
public struct APNsPush: Sendable {
  /// The translation, shared with the pushes to the request's other devices.
  public let template: APNsTemplate
  let device: ArraySlice<UInt8>
  /// The device's counter, or nil.
  let badge: Int64?

  /// Hexadecimal digits for the path: the device's token, or the request's `live_activity_token`.
  public var token: ArraySlice<UInt8> { if let activity = template.activityToken { activity[...] } else { device } }
  /// Appends `token` without retaining it.
  public func appendToken(to bytes: inout [UInt8]) {
    if let activity = template.activityToken { bytes += activity } else { bytes += device }
  }
  public var channel: ArraySlice<UInt8> { device }
  public var topic: [UInt8] { template.topic }
  public var pushType: [UInt8] { template.pushType.word }
  public var priority: Int { template.priority }
  public var expiration: Int64 { template.expiration }
  public var collapseID: [UInt8]? { template.collapseID }
  /// A canonical UUID, the same for every attempt. Computed on each access.
  public var id: [UInt8] { template.fixedID ?? template.identity.apnsID(token: device.span) }
  public func appendID(to bytes: inout [UInt8]) {
    if let id = template.fixedID { bytes += id } else { template.identity.appendAPNsID(token: device.span, to: &bytes) }
  }
  public var payload: [UInt8] { template.payload(badge: badge, token: device) }
}
