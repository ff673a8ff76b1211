import HTTP2
import PushCore

/// The checks of one request that need only the request (Apple, "Sending notification requests to APNs", "Handling notification
/// responses from APNs").
struct APNsRequestCheck {
  let request: ServerRequest
  /// Accepted bundle ids; empty for all.
  let topics: [[UInt8]]
  /// True if a certificate's topic replaces a missing `apns-topic`.
  let isTopicOptional: Bool

  static let pathPrefix = Array("/3/device/".utf8)

  /// The device token in the path, not checked.
  static func token(in path: [UInt8]) -> [UInt8] {
    path.starts(with: pathPrefix) ? Array(path.dropFirst(pathPrefix.count)) : []
  }

  /// Checks path and method, before everything else.
  func checkTarget() throws(APNsVerdict) {
    let path = request.header(":path") ?? []
    guard path.starts(with: Self.pathPrefix) else { throw APNsVerdict(status: 404, reason: "BadPath") }
    guard request.header(":method") == Array("POST".utf8) else { throw APNsVerdict(status: 405, reason: "MethodNotAllowed") }
    guard !Self.token(in: path).isEmpty else { throw .bad("MissingDeviceToken") }
  }

  func checkHeaders() throws(APNsVerdict) {
    var seen: Set<[UInt8]> = []
    for header in request.headers where !seen.insert(header.name).inserted { throw .bad("DuplicateHeaders") }
    if let id = request.header("apns-id"), !UUIDText.isCanonical(id) { throw .bad("BadMessageId") }
    if let expiration = request.header("apns-expiration"), Self.seconds(expiration) == nil { throw .bad("BadExpirationDate") }
    let priority = request.header("apns-priority") ?? Array("10".utf8)
    guard ["10", "5", "1"].contains(where: { priority.elementsEqual($0.utf8) }) else { throw .bad("BadPriority") }
    if let collapse = request.header("apns-collapse-id"), collapse.count > 64 { throw .bad("BadCollapseId") }
    let name = request.header("apns-push-type") ?? Array("alert".utf8)
    guard let type = PushType.byName[name] else { throw .bad("InvalidPushType") }
    if type.name == "background", priority == Array("10".utf8) { throw .bad("BadPriority") }
    try checkTopic(type)
    guard request.bodySize > 0 else { throw .bad("PayloadEmpty") }
    guard request.bodySize <= type.payloadLimit else { throw APNsVerdict(status: 413, reason: "PayloadTooLarge") }
  }

  private func checkTopic(_ type: PushType) throws(APNsVerdict) {
    guard let topic = request.header("apns-topic") else {
      if isTopicOptional { return }
      throw .bad("MissingTopic")
    }
    guard let bundleID = type.bundleID(of: topic), !bundleID.isEmpty else { throw .bad("BadTopic") }
    guard topics.isEmpty || topics.contains(bundleID) else { throw .bad("TopicDisallowed") }
  }

  /// Accepts hexadecimal of any even length up to 400 digits; Apple asks not to assume a length.
  func checkToken() throws(APNsVerdict) {
    let token = Self.token(in: request.header(":path") ?? [])
    let isHex = token.allSatisfy { $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 6 }
    guard isHex, token.count % 2 == 0, token.count <= 400 else { throw .bad("BadDeviceToken") }
  }

  /// Seconds since 1970. Milliseconds are accepted, as at APNs, and noted in the journal.
  static func seconds(_ text: [UInt8]) -> Int64? {
    guard !text.isEmpty, text.count <= 18, text.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
    return text.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
  }
}
