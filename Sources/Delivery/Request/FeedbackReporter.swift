import DeviceRegistry
import Providers
import PushCore
import Wire

/// Reports providers' verdicts on tokens to the registry and to the feedback queue. Confined to the shard's thread.
package struct FeedbackReporter {
  let apps: Applications
  package let marks: TokenMarks
  let owners: DeviceOwners?
  let publisher: OutcomePublisher
  let time: Turn

  /// The token that a push went to: the recipient's, or the Live Activity's that the request names.
  private func token(of entry: InFlight, _ recipient: Recipient) -> [UInt8] {
    recipient.platform == .apns ? entry.route.apns?.activityToken ?? Array(recipient.token) : Array(recipient.token)
  }

  /// Processes a provider's answer.
  /// - Parameter meaning: becomes what the answer means for the recipient.
  /// - Returns: false if the answer isn't believed, because the application's breaker is open.
  func take(_ meaning: inout ReplyMeaning, _ entry: InFlight, _ index: Int) -> Bool {
    let (kind, platform) = (entry.recipients[index].kind, entry.recipients[index].platform)
    if case .channel = kind {
      // A channel isn't a device's token.
      if meaning.reaction.isFeedback { meaning.reaction = .drop(.invalidRegistration) }
    } else if case (.fcm, .gone) = (platform, meaning.reaction), entry.route.fcm?.isForActivity == true {
      // For a push with a Live Activity's token, FCM's 404 doesn't say which of the two tokens is dead.
      meaning.reaction = .suspect(.invalidRegistration)
    }
    guard case .device = kind, let app = entry.identity.app else { return true }
    var isBelieved = true
    switch (platform, meaning.reaction) {
    case (.apns, _) where entry.route.apns?.isForActivity == true:
      marks.noteActivity(
        meaning, token: token(of: entry, entry.recipients[index]), app: app, admittedAt: entry.identity.admittedAt)
    // The answer may be about the activity's token, which the registry doesn't have.
    case (.fcm, .suspect) where entry.route.fcm?.isForActivity == true: break
    default:
      isBelieved = marks.note(
        meaning, platform, token: entry.recipients[index].token, app: app, admittedAt: entry.identity.admittedAt)
    }
    if meaning.reaction.isFeedback { report(meaning, app, entry, index) }
    return isBelieved
  }

  private func report(_ meaning: ReplyMeaning, _ app: Int, _ entry: InFlight, _ index: Int) {
    let recipient = entry.recipients[index]
    var details = details(of: entry, recipient)
    if recipient.platform == .apns {
      details.kind = entry.route.apns?.kindName
      details.apnsID = entry.apnsID(of: recipient)
    } else if recipient.platform == .fcm, entry.route.fcm?.isForActivity != true {
      details.kind = TokenKind.alert.name
    }
    let event = FeedbackEvent(
      meaning, app: apps[app].id, platform: recipient.platform, token: token(of: entry, recipient),
      registration: entry.registration(of: index), messageID: entry.identity.messageID, observedAt: time.wallClock,
      details: details)
    if let event { complete(event, entry, index) }
  }

  /// Repeats the feedback for a device that the registry has as gone, without asking the provider (GS-082).
  func reportGone(_ entry: InFlight, _ index: Int) {
    guard let app = entry.identity.app else { return }
    let recipient = entry.recipients[index]
    let event = FeedbackEvent(
      event: .notRegistered, app: apps[app].id, platform: recipient.platform, token: Array(recipient.token),
      registration: entry.registration(of: index), reason: "gone in the registry", status: 0,
      messageID: entry.identity.messageID,
      observedAt: time.wallClock, details: details(of: entry, recipient))
    complete(event, entry, index)
  }

  private func details(of entry: InFlight, _ recipient: Recipient) -> FeedbackEvent.Details {
    var details = FeedbackEvent.Details(sender: entry.delivery.properties.headers.sender)
    if recipient.platform == .apns, let app = entry.identity.app {
      details.environment =
        ([entry.route.routes] + apps[app].senders.values).lazy.compactMap { $0.environment(of: recipient.pool) }.first
    }
    if recipient.row >= 0, let rows = entry.registry.rows {
      details.environment = rows[recipient.row].environment.name ?? details.environment
      details.kind = rows[recipient.row].kind.name
      if rows[recipient.row].hasSender { details.sender = Array(rows.sender(recipient.row)) }
    }
    return details
  }

  /// Publishes the event; a registered device's event is completed from the registry first.
  private func complete(_ event: FeedbackEvent, _ entry: InFlight, _ index: Int) {
    let row = entry.recipients[index].row
    guard row >= 0, let rows = entry.registry.rows, let owners else { return publisher.publish(event, for: entry) }
    entry.ledger.owes()
    owners.append(event, of: rows[row].id, for: entry.reference)
  }
}
