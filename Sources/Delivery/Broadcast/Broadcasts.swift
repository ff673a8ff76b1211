import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Settings
import Wire

/// The state machine of requests to audiences: request, first page of each chain on the fan-out queue, further pages, campaign's
/// result. Each function returns the next steps. ``InFlight/BroadcastState`` has a request's progress. The request is acknowledged
/// as soon as the first pages are on the queue. From then on, the campaign's record in the registry and each chain's one unopened
/// page are its whole state, so any worker can continue after a crash. Confined to the shard's thread.
final class Broadcasts {
  let tools: ShardTools
  let publisher: OutcomePublisher
  let resolver: RecipientResolver
  let translator: Translator
  let observers: Observers
  let collapses: Collapses
  let marks: TokenMarks
  let fanOut: FanOutSettings
  /// The lifetime in milliseconds of a worker's claim of a campaign's result.
  let resultLease: Int64
  /// Requests whose campaign's result is claimed here and not yet confirmed.
  var resultClaims: [RequestReference] = []
  /// Pages whose record the registry couldn't save yet.
  var unsavedPages: [RequestReference] = []
  /// Paused or held campaigns that this shard has logged.
  private var waitingCampaigns: Set<[UInt8]> = []

  init(
    _ tools: ShardTools, publisher: OutcomePublisher, resolver: RecipientResolver, translator: Translator,
    collapses: Collapses, marks: TokenMarks, observers: Observers, fanOut: FanOutSettings, resultLease: Int64
  ) {
    self.tools = tools
    self.publisher = publisher
    self.resolver = resolver
    self.translator = translator
    self.collapses = collapses
    self.marks = marks
    self.observers = observers
    self.fanOut = fanOut
    self.resultLease = resultLease
  }

  func appID(of entry: InFlight) -> [UInt8] { tools.apps.id(of: entry.identity.app) }

  // MARK: the request

  func begin(_ entry: InFlight, _ audience: Audience) -> [AudienceStep] {
    entry.broadcast.work = AudienceWork(audience)
    guard tools.registry != nil else {
      var reason = "to: needs a registry, and none is configured"
      if case .topic = audience { reason += "; a topic that FCM keeps is fcm:/topics/<name>" }
      return [.reject(Rejection(.invalidParameters, reason))]
    }
    if entry.isPage { return takePage(entry) }
    if tools.time.wallClock > entry.identity.deadline {
      // Another copy of the request may have begun the campaign in time.
      guard entry.isNamed else { return [.expire] }
      let id = campaignID(of: entry)
      return [
        .ask(.read { try $0.campaign(id) }) { broadcasts, entry, campaign in
          campaign.map { broadcasts.campaignCreated(entry, $0) } ?? [.expire]
        }
      ]
    }
    if !audience.isSmall, !entry.isNamed { return nameAndPublishAgain(entry) }
    let app = appID(of: entry)
    let survey = AudienceStep.ask(.read { try $0.survey(audience, app: app) }) { $0.surveyed($1, $2) }
    return audience.isSmall ? [survey, readSmallAudience(entry, audience)] : [survey]
  }

  /// Publishes a request without a message id again, with one: a broadcast or a badge count must be recognised after a crash.
  /// The id is derived from the producer's `timestamp` and the content, so a crash before the acknowledgement gives the same
  /// id. Without a `timestamp`, requests with the same body can't be told apart, and each is sent.
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
    return [.conclude([.publish(tools.publications.again(for: entry))])]
  }

  /// For how many milliseconds a late broadcast waits until the registry can say whether it began in time; nil after a day.
  func delayOfDoubt(since deadline: Int64) -> Int64? { tools.time.wallClock - deadline <= 86_400_000 ? 300_000 : nil }

  private func surveyed(_ entry: InFlight, _ survey: AudienceEstimate) -> [AudienceStep] {
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

  private func createCampaign(_ entry: InFlight, _ survey: AudienceEstimate) -> [AudienceStep] {
    guard let request = entry.request else { return [] }
    var target = request.document.string(request.targetNode)
    if case .topic(let name)? = entry.broadcast.work?.audience { target = Array("/topics/".utf8) + name }
    let description = CampaignDescription(
      id: campaignID(of: entry), app: appID(of: entry), messageID: entry.identity.messageID,
      target: target, total: survey.estimate, highWater: survey.highWater,
      chains: fanOut.chains(for: survey.estimate), lowWater: survey.lowWater)
    return [.ask(.write(.campaigns) { try $0.createCampaign(description, now: $1) }) { $0.campaignCreated($1, $2) }]
  }

  /// The same for all deliveries of a request. A different request with the same message id gets another campaign.
  private func campaignID(of entry: InFlight) -> [UInt8] {
    let sender = entry.delivery.properties.headers.sender.map { $0 + [0] } ?? []
    return DeviceIdentity.apnsID(
      messageID: entry.identity.messageID,
      token: Array("campaign:".utf8) + appID(of: entry) + [0] + sender + entry.delivery.body)
  }

  /// A redelivered request may have published its first pages before; the registry then ignores the pages of this copy. Chain 0
  /// comes last: once its first page is opened, the others are on the queue. So a worker of an earlier build, which knows only
  /// that page, leaves no chain out.
  private func campaignCreated(_ entry: InFlight, _ campaign: Campaign) -> [AudienceStep] {
    entry.broadcast.work?.ends()
    tools.log.info(
      "campaign begins",
      [
        "campaign": campaign.description.id, "app": campaign.description.app, "message_id": campaign.description.messageID,
        "devices": campaign.description.total, "chains": campaign.description.chains,
      ])
    let pages = (0..<campaign.description.chains).reversed().map { chain -> AudienceStep in
      let (page, after, upTo) = campaign.description.start(of: chain)
      var first = PageTicket(
        campaign: campaign.description.id, number: page, after: after, upTo: upTo, deadline: entry.identity.deadline,
        using: &tools.time.random)
      first.isOfSeveralChains = campaign.description.chains > 1
      first.hasWaited = entry.collapse.hasWaited
      return .publish(tools.publications.page(first, for: entry))
    }
    return [.conclude([.begins(campaign)] + pages)]
  }

  // MARK: campaigns that are paused or held

  /// To be called about once a second. Asks which of the campaigns that are being sent are paused, held or cancelled.
  func findStopped(_ table: InFlightTable, then: @escaping (Set<[UInt8]>) -> Void) {
    let sent = table.entries.lazy.filter { $0.isInUse && $0.isOfCampaign && $0.broadcast.work?.stage == .sending }
    let campaigns = Set(sent.compactMap { $0.broadcast.page?.campaign })
    guard !campaigns.isEmpty else { return }
    tools.registry?.call(.read { try $0.stopped(campaigns) }) { result in
      if case .success(let stopped) = result, !stopped.isEmpty { then(stopped) }
    }
  }

  /// Logs once that a campaign is paused or held, although its page comes back repeatedly.
  func noteWaiting(_ campaign: Campaign) {
    if waitingCampaigns.count >= Self.mostWaitingCampaigns { waitingCampaigns.removeAll() }
    guard waitingCampaigns.insert(campaign.description.id).inserted else { return }
    tools.log.info(
      "campaign waits",
      [
        "campaign": campaign.description.id, "message_id": campaign.description.messageID, "state": campaign.state.name,
        "sent": campaign.sent, "failed": campaign.failed,
      ])
  }

  /// Above this limit, some campaigns are logged twice.
  private static let mostWaitingCampaigns = 1_000

  func noteRunning(_ campaign: [UInt8]) {
    if waitingCampaigns.remove(campaign) != nil { tools.log.info("campaign goes on", ["campaign": campaign]) }
  }

  /// Holds the campaign of a page because its application's breaker is open.
  func holdCampaign(of entry: InFlight) {
    guard let campaign = entry.broadcast.page?.campaign, !campaign.isEmpty, entry.broadcast.work?.isHeld == false else {
      return
    }
    entry.broadcast.work?.isHeld = true
    hold(campaign: campaign)
  }

  /// A refused page may end its campaign's chain: an operator must see the campaign held and replay the dead letter.
  func pageRejected(_ entry: InFlight, _ rejection: Rejection) {
    let campaign = entry.broadcast.page?.campaign
    tools.log.error(
      "a page of a campaign is a dead letter: remove the reason, resume the campaign, replay the letter",
      ["campaign": campaign.map { String(decoding: $0, as: UTF8.self) } ?? "unknown", "reason": rejection.reason])
    if let campaign { hold(campaign: campaign) }
  }

  private func hold(campaign: [UInt8]) {
    tools.registry?.call(.write(.campaigns) { try $0.setState(.held, of: campaign, now: $1) }) { [log = tools.log] result in
      guard case .success(true) = result else { return }
      log.error(
        "the campaign is held: pushfleet campaigns resume or cancel", ["campaign": String(decoding: campaign, as: UTF8.self)])
    }
  }
}
