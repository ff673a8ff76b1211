import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Wire

/// Requests to audiences: from the request to the first page on the fan-out queue, from page to page, and to the campaign's result. A state
/// machine: an event of a request comes in, what is to be done goes out. How far the request has come is in ``InFlight/BroadcastState``.
///
/// The request itself is acknowledged as soon as its first page is on the queue; from then on the campaign's record in the registry and
/// the one page that is not yet opened are all there is of it, so that any worker can go on after any crash. Confined to the shard's
/// thread.
final class Broadcasts {
  let publisher: OutcomePublisher
  let resolver: RecipientResolver
  let translator: Translator
  let observers: Observers
  let collapses: Collapses
  let marks: TokenMarks
  /// nil where none is configured.
  let registry: RegistryClient?
  let time: Turn
  let log: Log
  private let rights: ProducerRights
  /// Devices on a page.
  let pageSize: Int
  /// Milliseconds for which a worker that has claimed a campaign's result may be about to publish it.
  let resultLease: Int64
  /// Requests whose campaign's result was claimed for here and waits for its confirm.
  var resultClaims: [RequestReference] = []
  /// Pages whose record the registry couldn't take yet.
  var unsavedPages: [RequestReference] = []
  /// Campaigns that this shard has found paused or held, for the log.
  private var waitingCampaigns: Set<[UInt8]> = []

  init(
    registry: RegistryClient?, publisher: OutcomePublisher, resolver: RecipientResolver, translator: Translator,
    rights: ProducerRights, collapses: Collapses, marks: TokenMarks, observers: Observers, pageSize: Int,
    resultLease: Int64, time: Turn, log: Log
  ) {
    self.registry = registry
    self.publisher = publisher
    self.resolver = resolver
    self.translator = translator
    self.rights = rights
    self.collapses = collapses
    self.marks = marks
    self.observers = observers
    self.pageSize = pageSize
    self.resultLease = resultLease
    self.time = time
    self.log = log
  }

  var messages: OutcomePublications { publisher.messages }
  func appID(of entry: InFlight) -> [UInt8] { resolver.apps.id(of: entry.identity.app) }

  /// - Parameter isDraining: the worker stops, and begins no page more: the broker gives it to the next one.
  func handle(_ event: AudienceEvent, _ entry: InFlight, isDraining: Bool) -> [AudienceStep] {
    switch event {
    case .begun(let audience): begin(entry, audience)
    case .surveyed(let survey): surveyed(entry, survey)
    case .found(let campaign): campaign.map { campaignCreated(entry, $0) } ?? [.expire]
    case .created(let campaign): campaignCreated(entry, campaign)
    case .read(let read): isDraining ? [] : smallAudienceRead(entry, read)
    case .restRead(let rest): isDraining ? [] : restRead(entry, rest)
    case .opened(let opened): isDraining ? [] : pageOpened(entry, opened)
    case .pageConfirmed: pageConfirmed(entry)
    case .devicesEnded: devicesEnded(entry)
    case .expired(let page, let left): expired(entry, page, left)
    case .beginsAgain: beginAgain(entry)
    case .saveDue: savePage(entry)
    case .saved: pageSaved(entry)
    case .notSaved(let error): pageNotSaved(entry, error)
    case .reportDue: reportPage(entry)
    case .reported(let campaign): pageReported(entry, campaign)
    case .resultClaimed(let claim): resultClaimed(entry, claim)
    case .notReported(let error): oweReport(entry, "\(error)")
    }
  }

  // MARK: the request

  private func begin(_ entry: InFlight, _ audience: Audience) -> [AudienceStep] {
    entry.broadcast.work = AudienceWork(audience)
    guard registry != nil else {
      var reason = "to: needs a registry, and none is configured"
      if case .topic = audience { reason += "; a topic that FCM keeps is fcm:/topics/<name>" }
      return [.reject(Rejection(.invalidParameters, reason))]
    }
    if entry.isPage { return takePage(entry) }
    if time.wallClock > entry.identity.deadline {
      // Another copy of it may have begun in time, and then speaks for all.
      guard entry.isNamed else { return [.expire] }
      let id = campaignID(of: entry)
      return [.ask(.init(.read { try $0.campaign(id) }) { .found($0) })]
    }
    if !audience.isSmall, !entry.isNamed { return nameAndPublishAgain(entry) }
    let app = appID(of: entry)
    let survey = AudienceStep.ask(.init(.read { try $0.survey(audience, app: app) }) { .surveyed($0) })
    return audience.isSmall ? [survey, readSmallAudience(entry, audience)] : [survey]
  }

  /// A broadcast, or what counts badges, must be known again after a crash, so a request without a message id goes back to its queue with one. Should the worker
  /// die before the acknowledgement, the next one makes the same id of the producer's `timestamp`; without one, nothing tells the same
  /// request from another with the same body, and each is sent.
  func nameAndPublishAgain(_ entry: InFlight) -> [AudienceStep] {
    let properties = entry.delivery.properties
    if let timestamp = properties.timestamp, timestamp > 0 {
      let named = [MessageHeaders.environment, MessageHeaders.unknown].map { properties.headers.string($0) ?? [] }
      let choices = [properties.headers.sender ?? []] + named
      let producer = NoteReader.producer(of: entry.delivery, areNotesOurs: entry.source.areNotesOurs) ?? []
      let parts =
        [appID(of: entry)] + choices + [
          producer, properties.correlationID ?? [], properties.replyTo ?? [], Array("\(timestamp)".utf8),
        ]
      entry.identity.messageID = DeviceIdentity.apnsID(
        messageID: Array("request".utf8), token: Array(parts.joined(separator: [0])) + [0] + entry.delivery.body)
    }
    return [.conclude([.publish(messages.again(for: entry))])]
  }

  /// How long a broadcast that is too late waits for the registry's word on whether it has begun in time, in milliseconds; nil after a day.
  func delayOfDoubt(since deadline: Int64) -> Int64? { time.wallClock - deadline <= 86_400_000 ? 300_000 : nil }

  private func surveyed(_ entry: InFlight, _ survey: AudienceSurvey) -> [AudienceStep] {
    guard let audience = entry.broadcast.work?.audience else { return [] }
    guard survey.exists else { return [.reject(Rejection(.invalidRegistration, audience.missing))] }
    entry.broadcast.work?.survey = survey
    return audience.isSmall ? [] : createCampaign(entry, survey)
  }

  /// A user or group too large for one request is sent like a topic.
  func becomeCampaign(_ entry: InFlight) -> [AudienceStep] {
    guard entry.isNamed else { return nameAndPublishAgain(entry) }
    return entry.broadcast.work?.survey.map { createCampaign(entry, $0) } ?? []
  }

  private func createCampaign(_ entry: InFlight, _ survey: AudienceSurvey) -> [AudienceStep] {
    guard let parsed = entry.parsed else { return [] }
    let description = CampaignDescription(
      id: campaignID(of: entry), app: appID(of: entry), messageID: entry.identity.messageID,
      target: parsed.request.document.string(parsed.request.targetNode), total: survey.estimate, highWater: survey.highWater)
    return [.ask(.init(.write(.campaigns) { try $0.createCampaign(description, now: $1) }) { .created($0) })]
  }

  /// The same for every delivery of one request, and another for a request that only bears the same message id.
  private func campaignID(of entry: InFlight) -> [UInt8] {
    let sender = entry.delivery.properties.headers.sender.map { $0 + [0] } ?? []
    return DeviceIdentity.apnsID(
      messageID: entry.identity.messageID,
      token: Array("campaign:".utf8) + appID(of: entry) + [0] + sender + entry.delivery.body)
  }

  /// A redelivered request may have had its first page published before: then this is a copy that nobody opens.
  private func campaignCreated(_ entry: InFlight, _ campaign: Campaign) -> [AudienceStep] {
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
    return [.conclude([.begins(campaign), .publish(messages.page(first, for: entry))])]
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

  /// The chain of a campaign whose page was refused may end there: an operator is to see that, and to replay the letter.
  func pageRejected(_ entry: InFlight, _ rejection: Rejection) {
    let campaign = entry.broadcast.page?.campaign
    log.error(
      "a page of a campaign is a dead letter: fix what it says, resume the campaign, replay the letter",
      ["campaign": campaign.map { String(decoding: $0, as: UTF8.self) } ?? "unknown", "reason": rejection.reason])
    if let campaign { hold(campaign: campaign) }
  }

  private func hold(campaign: [UInt8]) {
    registry?.call(.write(.campaigns) { try $0.setState(.held, of: campaign, now: $1) }) { [log] result in
      guard case .success(true) = result else { return }
      log.error(
        "the campaign is held: pushfleet campaigns resume or cancel", ["campaign": String(decoding: campaign, as: UTF8.self)])
    }
  }
}
