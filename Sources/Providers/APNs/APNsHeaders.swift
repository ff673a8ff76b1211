import HTTP2
import PushCore

/// The header block of `POST /3/device/<token>` (apns-http2 §2), constant parts laid out once.
///
/// `:path`, `authorization` and what differs between pushes stay out of the compression table, so that the 4,096 bytes of it
/// keep what repeats: topic, push type and priority (apns-http2 §8).
struct APNsHeaders {
  let template: HeaderTemplate
  private var latest: Latest?
  private let path = Array("/3/device/".utf8)

  /// The translation of the latest push, whose headers are laid out as constants when a second push has it: a broadcast's pushes
  /// differ in `:path` and `apns-id` only.
  private struct Latest {
    let translation: APNsTemplate
    /// Of the authorisation.
    let generation: Int
    var template: HeaderTemplate?
  }

  private static let variable = [
    ":path", "authorization", "apns-topic", "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id", "apns-id",
  ]
  /// Which of them differ between the pushes of one translation.
  private static let perDevice = [0, 7]

  init(authority: String) {
    template = HeaderTemplate(
      constant: [(":method", "POST"), (":scheme", "https"), (":authority", authority)], variable: Self.variable,
      unindexed: [":path", "authorization", "apns-expiration", "apns-collapse-id", "apns-id"])
  }

  /// Submits `push` under `tag`. `authorization`, told apart by `generation`, is absent on a certificate's connection.
  mutating func submit(
    _ push: borrowing APNsPush, authorization: [UInt8]?, generation: Int, to session: ClientSession, tag: Int
  ) {
    if let template = fixedTemplate(push, authorization, generation) {
      session.submit(template, body: push.payload, tag: tag) { values in
        values.append(path, push.token)
        values.append { push.appendID(to: &$0) }
      }
    } else {
      session.submit(template, body: push.payload, tag: tag) { fill(&$0, push, authorization) }
    }
  }

  private mutating func fixedTemplate(_ push: borrowing APNsPush, _ authorization: [UInt8]?, _ generation: Int)
    -> HeaderTemplate?
  {
    guard let latest, latest.translation === push.template, latest.generation == generation else {
      latest = Latest(translation: push.template, generation: generation)
      return nil
    }
    if latest.template == nil {
      var values = HeaderValues()
      fill(&values, push, authorization)
      self.latest?.template = HeaderTemplate(template, fixing: values, varying: Self.perDevice)
    }
    return self.latest?.template
  }

  /// All values, in the order of `variable`.
  private func fill(_ values: inout HeaderValues, _ push: borrowing APNsPush, _ authorization: [UInt8]?) {
    values.append(path, push.token)
    if let authorization { values.append(authorization) } else { values.appendAbsent() }
    values.append(push.topic)
    values.append(push.pushType)
    values.append(decimal: Int64(push.priority))
    values.append(decimal: push.expiration)
    if let collapseID = push.collapseID { values.append(collapseID) } else { values.appendAbsent() }
    values.append { push.appendID(to: &$0) }
  }
}
