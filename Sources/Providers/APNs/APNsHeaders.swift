import HTTP2
import PushCore

/// The header block of `POST /3/device/<token>` (Apple, "Sending notification requests to APNs"), constant parts laid out once, and that of a
/// broadcast (Apple, "Sending broadcast push notification requests to APNs").
///
/// `:path`, `authorization` and what differs between pushes stay out of the compression table, so that the 4,096 bytes of it
/// keep what repeats: topic, push type and priority (the same page).
struct APNsHeaders {
  /// `authorization`; nil on a certificate's connection.
  var authorization: [UInt8]? { didSet { latest = nil } }
  private let template: HeaderTemplate
  private let path = Array("/3/device/".utf8)
  private let broadcast: HeaderTemplate
  private let broadcastPath = Array("/4/broadcasts/apps/".utf8)
  /// The translation of the latest push, whose headers are laid out as constants when a second push has it: a broadcast's pushes
  /// differ in `:path` and `apns-id` only.
  private var latest: APNsTemplate? { didSet { repeating = nil } }
  private var repeating: HeaderTemplate?
  /// Of the push that is being submitted.
  private var values = HeaderValues()

  private static let variable = [
    ":path", "authorization", "apns-topic", "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id", "apns-id",
  ]
  /// Which of them differ between the pushes of one translation.
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

  /// Submits `push` under `tag`.
  mutating func submit(_ push: borrowing APNsPush, to session: ClientSession, tag: Int) {
    if push.template.isBroadcast {
      fillBroadcast(push)
      session.submit(broadcast, body: push.payload, tag: tag, &values)
    } else if let repeating, latest === push.template {
      appendPath(of: push)
      appendID(of: push)
      session.submit(repeating, body: push.payload, tag: tag, &values)
    } else {
      fill(push)
      layOut(push)
      session.submit(template, body: push.payload, tag: tag, &values)
    }
  }

  private mutating func layOut(_ push: borrowing APNsPush) {
    guard latest === push.template else { return latest = push.template }
    repeating = HeaderTemplate(template, fixing: values, varying: Self.perDevice)
  }

  /// All values, in the order of `variable`.
  private mutating func fill(_ push: borrowing APNsPush) {
    appendPath(of: push)
    if let authorization { values.append(authorization) } else { values.appendAbsent() }
    values.append(push.topic)
    values.append(push.pushType)
    values.append(decimal: Int64(push.priority))
    values.append(decimal: push.expiration)
    if let collapseID = push.collapseID { values.append(collapseID) } else { values.appendAbsent() }
    appendID(of: push)
  }

  /// All values of a broadcast, in its template's order.
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
