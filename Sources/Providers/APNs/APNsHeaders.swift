import HTTP2
import PushCore

/// The header block of `POST /3/device/<token>` (apns-http2 §2), constant parts laid out once.
///
/// `:path`, `authorization` and what differs between pushes stay out of the compression table, so that the 4,096 bytes of it
/// keep what repeats: topic, push type and priority (apns-http2 §8).
struct APNsHeaders {
  let template: HeaderTemplate
  private var values = HeaderValues()
  private let path = Array("/3/device/".utf8)

  init(authority: String) {
    template = HeaderTemplate(
      constant: [(":method", "POST"), (":scheme", "https"), (":authority", authority)],
      variable: [
        ":path", "authorization", "apns-topic", "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id",
        "apns-id",
      ],
      unindexed: [":path", "authorization", "apns-expiration", "apns-collapse-id", "apns-id"])
  }

  /// Submits `push` under `tag`. `authorization` is absent on a certificate's connection.
  mutating func submit(_ push: APNsPush, authorization: [UInt8]?, to session: ClientSession, tag: Int) {
    values.removeAll()
    values.append(path, push.token)
    if let authorization { values.append(authorization) } else { values.appendAbsent() }
    values.append(push.topic)
    values.append(push.pushType)
    values.append(decimal: Int64(push.priority))
    values.append(decimal: push.expiration)
    if let collapseID = push.collapseID { values.append(collapseID) } else { values.appendAbsent() }
    values.append(push.id)
    session.submit(template, values, body: push.payload, tag: tag)
  }
}
