import HTTP2
import PushCore

/// The checks of one broadcast to a channel (Apple, "Sending broadcast push notification requests to APNs", "Handling error
/// responses from APNs").
struct BroadcastCheck {
  let request: ServerRequest
  /// Accepted bundle ids; empty for all.
  let topics: [[UInt8]]

  static let pathPrefix = Array("/4/broadcasts/apps/".utf8)
  static let payloadLimit = 5120

  /// The bundle id in the path, not checked.
  var app: [UInt8] { Array((request.header(":path") ?? []).dropFirst(Self.pathPrefix.count)) }

  func checkTarget() throws(APNsVerdict) {
    guard !app.isEmpty, !app.contains(UInt8(ascii: "/")) else { throw APNsVerdict(status: 404, reason: "BadPath") }
    guard request.header(":method") == Array("POST".utf8) else { throw APNsVerdict(status: 405, reason: "MethodNotAllowed") }
  }

  func checkHeaders(_ channels: ChannelRegistry) throws(APNsVerdict) {
    var seen: Set<[UInt8]> = []
    for header in request.headers where !seen.insert(header.name).inserted { throw .bad("DuplicateHeaders") }
    // The path has the bundle id without a push type's suffix.
    guard PushType.byName[Array("alert".utf8)]?.bundleID(of: app) != nil, topics.isEmpty || topics.contains(app) else {
      throw .bad("TopicDisallowed")
    }
    if let id = request.header("apns-request-id"), !UUIDText.isCanonical(id) { throw .bad("BadMessageId") }
    guard let channel = request.header("apns-channel-id"), !channel.isEmpty else { throw .bad("MissingChannelId") }
    guard let type = request.header("apns-push-type") else { throw .bad("MissingPushType") }
    guard type.map({ $0 | 0x20 }).elementsEqual("liveactivity".utf8) else { throw .bad("InvalidPushType") }
    guard let expiration = request.header("apns-expiration").flatMap(APNsRequestCheck.seconds) else {
      throw .bad("BadExpirationDate")
    }
    let priority = request.header("apns-priority") ?? Array("10".utf8)
    guard ["10", "5", "1"].contains(where: { priority.elementsEqual($0.utf8) }) else { throw .bad("BadPriority") }
    guard let policy = channels.policy(of: channel, app) else { throw .bad("ChannelNotRegistered") }
    if policy == .storesNothing, expiration != 0 { throw .bad("BadExpirationDate") }
    guard request.bodySize > 0 else { throw .bad("PayloadEmpty") }
    guard request.bodySize <= Self.payloadLimit else { throw APNsVerdict(status: 413, reason: "PayloadTooLarge") }
  }

  /// Mistakes that APNs doesn't report, or that show only on the device.
  func violations(_ payload: JSONDocument?) -> [String] {
    var violations: [String] = []
    if request.header("apns-topic") != nil { violations.append("apns-topic: a broadcast has none") }
    if let payload, let aps = payload.value("aps", of: payload.root), let event = payload.value("event", of: aps),
      payload.isString(event, "start")
    {
      violations.append("aps.event: a broadcast can't start an activity")
    }
    return violations
  }
}
