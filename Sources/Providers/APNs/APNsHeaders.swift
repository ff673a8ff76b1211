import HTTP2
import PushCore

/// The header blocks of `POST /3/device/<token>` (Apple, "Sending notification requests to APNs") and of broadcasts (Apple,
/// "Sending broadcast push notification requests to APNs"). Values that differ between pushes, and `authorization`, stay out of
/// the compression table. Its 4,096 bytes keep the repeated values: topic, push type and priority (the same page).
struct APNsHeaders {
  /// Nil on a certificate's connection.
  var authorization: [UInt8]? { didSet { common = nil } }
  private let template: HeaderTemplate
  private let path = Array("/3/device/".utf8)
  private let broadcast: HeaderTemplate
  private let broadcastPath = Array("/4/broadcasts/apps/".utf8)
  /// A translation whose headers the latest pushes have in common, except `:path` and `apns-id`.
  private var common: APNsTemplate? {
    didSet {
      repetitions = 0
      repeating = nil
    }
  }
  private var repetitions = 0
  /// The common headers as constants; nil before `enough` repetitions.
  private var repeating: HeaderTemplate?
  /// Pushes after which a template is made: it costs some 9,000 instructions, and saves 1,300 a push.
  private static let enough = 16
  private var values = HeaderValues()

  private static let variable = [
    ":path", "authorization", "apns-topic", "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id", "apns-id",
  ]
  /// The indices of values that differ between pushes with common headers.
  private static let perDevice = [0, 7]

  init(authority: String) {
    template = HeaderTemplate(
      constant: [(":method", "POST"), (":scheme", "https"), (":authority", authority)], variable: Self.variable,
      unindexed: [":path", "authorization", "apns-expiration", "apns-collapse-id", "apns-id"])
    broadcast = HeaderTemplate(
      constant: [(":method", "POST"), (":scheme", "https"), (":authority", authority)],
      variable: [
        ":path", "authorization", "apns-channel-id", "apns-push-type", "apns-priority", "apns-expiration", "apns-request-id",
      ], unindexed: [":path", "authorization", "apns-expiration", "apns-request-id"])
  }

  mutating func submit(_ push: borrowing APNsPush, to session: ClientSession, tag: Int) {
    if push.template.isBroadcast {
      fillBroadcast(push)
      session.submit(broadcast, body: push.payload, tag: tag, &values)
    } else if hasCommonHeaders(push), let repeating {
      appendPath(of: push)
      appendID(of: push)
      session.submit(repeating, body: push.payload, tag: tag, &values)
    } else {
      fill(push)
      if repetitions == Self.enough { repeating = HeaderTemplate(template, fixing: values, varying: Self.perDevice) }
      session.submit(template, body: push.payload, tag: tag, &values)
    }
  }

  private mutating func hasCommonHeaders(_ push: borrowing APNsPush) -> Bool {
    guard common === push.template || common.map(push.template.hasHeaders) == true else {
      common = push.template
      return false
    }
    repetitions += 1
    return true
  }

  private mutating func fill(_ push: borrowing APNsPush) {
    appendPath(of: push)
    if let authorization { values.append(authorization) } else { values.appendAbsent() }
    values.append(push.template.topic)
    values.append(push.pushType)
    values.append(decimal: Int64(push.priority))
    values.append(decimal: push.expiration)
    if let collapseID = push.collapseID { values.append(collapseID) } else { values.appendAbsent() }
    appendID(of: push)
  }

  private mutating func fillBroadcast(_ push: borrowing APNsPush) {
    values.bytes += broadcastPath
    values.append(push.topic)
    if let authorization { values.append(authorization) } else { values.appendAbsent() }
    values.append(push.channel)
    values.append(push.pushType)
    values.append(decimal: Int64(push.priority))
    values.append(decimal: push.expiration)
    appendID(of: push)
  }

  private mutating func appendPath(of push: borrowing APNsPush) {
    values.bytes += path
    push.appendToken(to: &values.bytes)
    values.endValue()
  }

  private mutating func appendID(of push: borrowing APNsPush) {
    push.appendID(to: &values.bytes)
    values.endValue()
  }
}
