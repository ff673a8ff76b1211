import HTTP2
import PushCore

/// One request to create, read, delete or list channels (Apple, "Sending channel management requests to APNs").
struct ChannelManagement {
  let request: ServerRequest
  /// Accepted bundle ids; empty for all.
  let topics: [[UInt8]]

  static let pathPrefix = Array("/1/apps/".utf8)

  private enum Operation { case create, read, delete, list }

  /// The bundle id and the requested operation.
  private func target() throws(APNsVerdict) -> (app: [UInt8], Operation) {
    let path = (request.header(":path") ?? []).dropFirst(Self.pathPrefix.count)
    let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty else { throw APNsVerdict(status: 404, reason: "BadPath") }
    let (app, method) = (Array(parts[0]), request.header(":method") ?? [])
    switch String(decoding: parts[1], as: UTF8.self) {
    case "channels":
      if method.elementsEqual("POST".utf8) { return (app, .create) }
      if method.elementsEqual("GET".utf8) { return (app, .read) }
      if method.elementsEqual("DELETE".utf8) { return (app, .delete) }
    case "all-channels": if method.elementsEqual("GET".utf8) { return (app, .list) }
    default: throw APNsVerdict(status: 404, reason: "BadPath")
    }
    throw APNsVerdict(status: 405, reason: "MethodNotAllowed")
  }

  func checkTarget() throws(APNsVerdict) { _ = try target() }

  /// - Parameter id: the id of a new channel.
  func perform(on channels: inout ChannelRegistry, id: [UInt8]) throws(APNsVerdict) -> SimulatedAnswer {
    let (app, operation) = try target()
    guard PushType.byName[Array("alert".utf8)]?.bundleID(of: app) != nil, topics.isEmpty || topics.contains(app) else {
      throw .bad("TopicDisallowed")
    }
    switch operation {
    case .create:
      guard let made = channels.make(for: app, try policy(), id: id) else { throw .bad("CannotCreateChannelConfig") }
      return SimulatedAnswer(status: 201, headers: [HeaderField(name: Self.channelID, value: made)])
    case .read:
      guard let policy = channels.policy(of: try channel(), app) else { throw .bad("ChannelNotRegistered") }
      let body: JSONObject = ["message-storage-policy": policy.rawValue, "push-type": "LiveActivity"]
      return SimulatedAnswer(status: 200, body: body.line)
    case .delete:
      guard channels.remove(try channel(), of: app) else { throw .bad("ChannelNotRegistered") }
      return SimulatedAnswer(status: 204)
    case .list:
      return SimulatedAnswer(status: 200, body: (["channels": channels.all(of: app)] as JSONObject).line)
    }
  }

  private func channel() throws(APNsVerdict) -> [UInt8] {
    guard let id = request.header("apns-channel-id"), !id.isEmpty else { throw .bad("MissingChannelId") }
    return id
  }

  /// Both fields are required. The reason for a missing or bad policy is undocumented, but clients have seen it.
  private func policy() throws(APNsVerdict) -> ChannelRegistry.Policy {
    guard request.bodySize > 0 else { throw .bad("PayloadEmpty") }
    guard let body = try? JSONDocument(request.body), body.kind(body.root) == .object else { throw .bad("BadRequestPayload") }
    guard let node = body.value("message-storage-policy", of: body.root), let number = body.integer(node),
      let policy = ChannelRegistry.Policy(rawValue: number)
    else { throw .bad("MissingChannelQueueSize") }
    guard let type = body.value("push-type", of: body.root) else { throw .bad("MissingPushType") }
    guard body.isString(type, "LiveActivity") else { throw .bad("InvalidPushType") }
    return policy
  }

  static let channelID = Array("apns-channel-id".utf8)
}
