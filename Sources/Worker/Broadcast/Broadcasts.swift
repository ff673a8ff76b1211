import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Wire

/// Requests to audiences: from the request to the first page on the fan-out queue, from page to page, and to the campaign's result.
///
/// The request itself is acknowledged as soon as its first page is on the queue; from then on the campaign's record in the registry and
/// the one page that is not yet opened are all there is of it, so that any worker can go on after any crash. Confined to the shard's
/// thread.
final class Broadcasts {
  /// Owns this one, and takes what is decided here.
  unowned var pipeline: Pipeline!
  let time: Turn
  let log: Log
  let publications: OutcomePublications
  let marks: TokenMarks
  /// Devices on a page.
  let pageSize: Int
  let registry: RegistryClient?
  /// Milliseconds for which a worker that has claimed a campaign's result may be about to publish it.
  private let resultLease: Int64

  /// Requests whose campaign's result was claimed for here and waits for its confirm.
  private var resultClaims: [RequestReference] = []
  /// Pages whose record the registry couldn't take yet.
  var unsavedPages: [RequestReference] = []
  /// Campaigns that this shard has found paused or held, for the log.
  private var waitingCampaigns: Set<[UInt8]> = []

  /// - Parameter registry: nil where none is configured.
  init(
    registry: RegistryClient?, publications: OutcomePublications, marks: TokenMarks, pageSize: Int, resultLease: Int64 = 10_000,
    time: Turn,
    log: Log
  ) {
    self.registry = registry
    self.publications = publications
    self.marks = marks
    self.pageSize = pageSize
    self.resultLease = resultLease
    self.time = time
    self.log = log
  }

  // MARK: calls to the registry

  /// Calls for what is needed to go on with a request that isn't concluded. While the registry can't answer, it goes to the ladder.
  func ask<Answer>(
    _ call: RegistryCall<Answer>, for entry: InFlight, then: @escaping (Broadcasts) -> (InFlight, Answer) -> Void
  ) {
    report(call, for: entry) { broadcasts in
      { entry, answer in if !entry.ledger.isConcluded { then(broadcasts)(entry, answer) } }
    } orElse: { broadcasts in
      { entry, error in broadcasts.pipeline.refuseOrPutOff(entry, error) }
    }
  }

  /// Calls for what a page owes.
  func report<Answer>(
    _ call: RegistryCall<Answer>, for entry: InFlight, then: @escaping (Broadcasts) -> (InFlight, Answer) -> Void,
    orElse: @escaping (Broadcasts) -> (InFlight, RegistryError) -> Void
  ) {
    pipeline.ask(call, about: entry) { [unowned self] entry, result in
      switch result {
      case .success(let answer): then(self)(entry, answer)
      case .failure(let error): orElse(self)(entry, error)
      }
    }
  }

  func note<Answer>(_ call: RegistryCall<Answer>) { registry?.note(call) }

  // MARK: the request

  func begin(_ entry: InFlight, _ audience: Audience) {
    entry.broadcast.work = AudienceWork(audience)
    guard registry != nil else {
      var reason = "to: needs a registry, and none is configured"
      if case .topic = audience { reason += "; a topic that FCM keeps is fcm:/topics/<name>" }
      return pipeline.reject(entry, Rejection(.invalidParameters, reason))
    }
    if entry.isPage {
      takePage(entry)
    } else if time.wallClock > entry.identity.deadline {
      // Another copy of it may have begun in time, and then speaks for all.
      guard entry.isNamed else { return pipeline.expire(entry) }
      ask(.campaign(campaignID(of: entry)), for: entry, then: Broadcasts.foundCampaign)
    } else if !audience.isSmall, !entry.isNamed {
      nameAndPublishAgain(entry)
    } else {
      ask(.survey(audience, app: pipeline.appID(of: entry)), for: entry, then: Broadcasts.surveyed)
      if audience.isSmall { readSmallAudience(entry, audience) }
    }
  }

  /// A broadcast, or what counts badges, must be known again after a crash, so a request without a message id goes back to its queue with one. Should the worker
  /// die before the acknowledgement, the next one makes the same id of the producer's `timestamp`; without one, nothing tells the same
  /// request from another with the same body, and each is sent.
  func nameAndPublishAgain(_ entry: InFlight) {
    let properties = entry.delivery.properties
    if let timestamp = properties.timestamp, timestamp > 0 {
      let named = [MessageHeaders.environment, MessageHeaders.unknown].map { properties.headers.string($0) ?? [] }
      let choices = [properties.headers.sender ?? []] + named
      let producer = pipeline.noteReader.producer(of: entry.delivery, queue: entry.source.queue) ?? []
      let parts =
        [pipeline.appID(of: entry)] + choices + [
          producer, properties.correlationID ?? [], properties.replyTo ?? [], Array("\(timestamp)".utf8),
        ]
      entry.identity.messageID = DeviceIdentity.apnsID(
        messageID: Array("request".utf8), token: Array(parts.joined(separator: [0])) + [0] + entry.delivery.body)
    }
    pipeline.conclude(entry) { pipeline.publish(publications.again(for: entry)) }
  }

  private func surveyed(_ entry: InFlight, _ survey: AudienceSurvey) {
    guard let audience = entry.broadcast.work?.audience else { return }
    guard survey.exists else { return pipeline.reject(entry, Rejection(.invalidRegistration, audience.missing)) }
    entry.broadcast.work?.survey = survey
    if !audience.isSmall { createCampaign(entry, survey) }
  }

  /// A user or group too large for one request is sent like a topic.
  func becomeCampaign(_ entry: InFlight) {
    guard entry.isNamed else { return nameAndPublishAgain(entry) }
    if let survey = entry.broadcast.work?.survey { createCampaign(entry, survey) }
  }

  private func createCampaign(_ entry: InFlight, _ survey: AudienceSurvey) {
    guard let parsed = entry.parsed else { return }
    let description = CampaignDescription(
      id: campaignID(of: entry), app: pipeline.appID(of: entry), messageID: entry.identity.messageID,
      target: parsed.request.document.string(parsed.request.targetNode), total: survey.estimate, highWater: survey.highWater)
    ask(.createCampaign(description), for: entry, then: Broadcasts.campaignCreated)
  }

  /// The same for every delivery of one request, and another for a request that only bears the same message id.
  private func campaignID(of entry: InFlight) -> [UInt8] {
    let sender = entry.delivery.properties.headers.sender.map { $0 + [0] } ?? []
    return DeviceIdentity.apnsID(
      messageID: entry.identity.messageID,
      token: Array("campaign:".utf8) + pipeline.appID(of: entry) + [0] + sender + entry.delivery.body)
  }

  private func foundCampaign(_ entry: InFlight, _ campaign: Campaign?) {
    if let campaign { campaignCreated(entry, campaign) } else { pipeline.expire(entry) }
  }

  /// A redelivered request may have had its first page published before: then this is a copy that nobody opens.
  private func campaignCreated(_ entry: InFlight, _ campaign: Campaign) {
    entry.broadcast.work?.ends()
    log.info(
      "campaign begins",
      [
        "campaign": campaign.description.id, "app": campaign.description.app, "message_id": campaign.description.messageID,
        "devices": campaign.description.total,
      ])
    var first = PageTicket(
      campaign: campaign.description.id, number: 0, after: 0, upTo: campaign.description.highWater,
      deadline: entry.identity.deadline,
      using: &time.random)
    first.hasWaited = entry.collapse.hasWaited
    pipeline.conclude(entry) {
      pipeline.noteBegun(entry, campaign)
      pipeline.publish(publications.page(first, for: entry))
    }
  }

  // MARK: campaigns that are paused or held

  /// Says once that a campaign was paused or held, though its page comes back again and again.
  func noteWaiting(_ campaign: Campaign) {
    if waitingCampaigns.count >= Self.mostWaitingCampaigns { waitingCampaigns.removeAll() }
    guard waitingCampaigns.insert(campaign.description.id).inserted else { return }
    log.info(
      "campaign waits",
      [
        "campaign": campaign.description.id, "message_id": campaign.description.messageID, "state": campaign.state.name,
        "sent": campaign.sent, "failed": campaign.failed,
      ])
  }

  /// Above it, some are logged twice.
  private static let mostWaitingCampaigns = 1_000

  func noteRunning(_ campaign: [UInt8]) {
    if waitingCampaigns.remove(campaign) != nil { log.info("campaign goes on", ["campaign": campaign]) }
  }

  /// The campaign of a page is held once its application's breaker is open.
  func holdCampaign(of entry: InFlight) {
    guard let campaign = entry.broadcast.page?.campaign, !campaign.isEmpty, entry.broadcast.work?.isHeld == false else {
      return
    }
    entry.broadcast.work?.isHeld = true
    hold(campaign: campaign)
  }

  func hold(campaign: [UInt8]) {
    registry?.call(.setState(.held, campaign: campaign)) { [log] result in
      guard case .success(true) = result else { return }
      log.error(
        "the campaign is held: pushfleet campaigns resume or cancel", ["campaign": String(decoding: campaign, as: UTF8.self)])
    }
  }

  // MARK: the result

  /// Every page is settled: exactly one of those who find that out publishes the result.
  func claimResult(_ entry: InFlight) {
    guard let page = entry.broadcast.page else { return }
    entry.ledger.owes()
    let claimant = UUIDText.random(using: &time.random)
    entry.broadcast.work?.claimant = claimant
    report(
      .finish(campaign: page.campaign, claimant: claimant, lease: resultLease), for: entry, then: Broadcasts.resultClaimed,
      orElse: Broadcasts.oweReport)
  }

  /// To be called about once a second: a result that waits for its confirm, for as long as the broker takes, is still this worker's.
  func renewResultClaims() {
    resultClaims.removeAll { pipeline.table[$0] == nil }
    for claim in resultClaims {
      guard let entry = pipeline.table[claim], let page = entry.broadcast.page, let work = entry.broadcast.work else {
        continue
      }
      note(.finish(campaign: page.campaign, claimant: work.claimant, lease: resultLease))
    }
  }

  private func resultClaimed(_ entry: InFlight, _ claim: ResultClaim) {
    // Whoever has claimed it may die before it is out.
    if claim == .claimedElsewhere { return oweReport(entry, "another worker is about to publish the result") }
    if case .claimed(let failures) = claim, let campaign = entry.broadcast.work?.campaign {
      entry.broadcast.work?.isResultClaimed = true
      resultClaims.append(entry.reference)
      log.info(
        "campaign ended",
        [
          "campaign": String(decoding: campaign.description.id, as: UTF8.self),
          "app": campaign.description.app, "message_id": campaign.description.messageID,
          "cancelled": campaign.state == .cancelled, "sent": campaign.sent, "failed": campaign.failed,
          "unknown": campaign.unknown, "not_sent": campaign.state == .cancelled ? campaign.remaining : 0,
        ])
      pipeline.publishFanOutResult(
        of: entry, success: campaign.sent, failure: campaign.failed, unknown: campaign.unknown, failures: failures)
    }
    pipeline.consequenceEnded(of: entry)
  }

  /// The result is confirmed: should the page come again, nobody publishes it a second time.
  func noteResultPublished(_ entry: InFlight) {
    guard entry.broadcast.work?.isResultClaimed == true, let page = entry.broadcast.page else { return }
    note(.resultPublished(campaign: page.campaign))
  }
}
