import AMQP
import PushCore
import Storage

/// From a request to an audience to the first page of it on the fan-out queue.
///
/// The request itself is acknowledged as soon as its first page is on the queue; from then on the campaign's account in the
/// registry and the one page that is not yet opened are all there is of it, so that any worker can go on after any crash.
extension Pipeline {
  func beginAudience(_ entry: InFlight, _ audience: Audience) {
    entry.work = AudienceWork(audience)
    guard desk != nil else {
      return reject(entry, Rejection(.invalidParameters, "to: needs a registry, and none is configured"))
    }
    if entry.page != nil {
      takePage(entry)
    } else if time.wallClock > entry.deadline {
      // Another copy of it may have begun in time, and then speaks for all.
      guard isNamed(entry) else { return expire(entry) }
      ask(entry, .findCampaign, .campaign(Self.campaignID(of: entry, appID(of: entry))))
    } else if !audience.isSmall, !isNamed(entry) {
      nameAndPublishAgain(entry)
    } else {
      ask(entry, .survey, .survey(audience, app: appID(of: entry)))
      if audience.isSmall { readSmallAudience(entry, audience) }
    }
  }

  func isNamed(_ entry: InFlight) -> Bool { entry.delivery.properties.messageID?.isEmpty == false }

  /// A broadcast must be known again after a crash, so a request without a message id goes back to its queue with one. Should the worker
  /// die before the acknowledgement, the next one makes the same id of the producer's `timestamp`; without one, nothing tells the same
  /// request from another with the same body, and each is sent.
  private func nameAndPublishAgain(_ entry: InFlight) {
    let properties = entry.delivery.properties
    if let timestamp = properties.timestamp, timestamp > 0 {
      let sender = properties.headers.string("x-push-sender") ?? []
      let parts = [
        appID(of: entry), sender, properties.correlationID ?? [], properties.replyTo ?? [], Array("\(timestamp)".utf8),
      ]
      entry.messageID = DeviceIdentity.apnsID(
        messageID: Array("request".utf8), token: Array(parts.joined(separator: [0])) + [0] + entry.delivery.body)
    }
    conclude(entry) { publish(publications.again(for: entry)) }
  }

  func surveyed(_ entry: InFlight, _ survey: AudienceSurvey) {
    guard let audience = entry.work?.audience else { return }
    guard survey.exists else { return reject(entry, Rejection(.invalidRegistration, audience.missing)) }
    entry.work?.survey = survey
    if !audience.isSmall { createCampaign(entry, survey) }
  }

  /// A user or group too large for one request is sent like a topic.
  func becomeCampaign(_ entry: InFlight) {
    guard isNamed(entry) else { return nameAndPublishAgain(entry) }
    if let survey = entry.work?.survey { createCampaign(entry, survey) }
  }

  private func createCampaign(_ entry: InFlight, _ survey: AudienceSurvey) {
    guard let held = entry.held else { return }
    let app = appID(of: entry)
    let description = CampaignDescription(
      id: Self.campaignID(of: entry, app), app: app, messageID: entry.messageID,
      target: held.request.document.string(held.request.targetNode), total: survey.estimate, highWater: survey.highWater)
    ask(entry, .createCampaign, .createCampaign(description))
  }

  /// The same for every delivery of one request, and another for a request that only bears the same message id.
  private static func campaignID(of entry: InFlight, _ app: [UInt8]) -> [UInt8] {
    let sender = entry.delivery.properties.headers.string("x-push-sender").map { $0 + [0] } ?? []
    return DeviceIdentity.apnsID(
      messageID: entry.messageID, token: Array("campaign:".utf8) + app + [0] + sender + entry.delivery.body)
  }

  /// A redelivered request may have had its first page published before: then this is a copy that nobody opens.
  func campaignCreated(_ entry: InFlight, _ campaign: Campaign) {
    entry.work?.stage = .ending
    log.info(
      "campaign begins",
      [
        "campaign": campaign.description.id, "app": campaign.description.app, "message_id": campaign.description.messageID,
        "devices": campaign.description.total,
      ])
    let first = PageTicket(
      campaign: campaign.description.id, number: 0, after: 0, upTo: campaign.description.highWater, deadline: entry.deadline,
      using: &time.random)
    conclude(entry) { publish(publications.page(first, for: entry)) }
  }
}
