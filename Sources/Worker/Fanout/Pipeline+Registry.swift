import AMQP
import PushCore
import Storage

/// Registrations to devices, marks of dead tokens, changes of the registry, and what happens while it can't answer.
extension Pipeline: RegistryDeskOwner {
  /// A question that is asked again when the registry is back; failing at once is reported like failing later.
  func ask(_ ask: RegistryDesk.Ask, _ request: RegistryRequest) {
    desk?.ask(ask, request)
  }

  func appID(of entry: InFlight) -> [UInt8] { entry.app.map { apps[$0].id } ?? [] }

  // MARK: registrations

  /// At the end of a turn: the registrations of all requests that the turn brought, looked up together.
  func resolveRegistrations() {
    guard !unresolved.isEmpty else { return }
    var rest = unresolved[...]
    while let first = rest.first {
      let batch = rest.prefix(Self.registrationsPerLookUp).prefix { $0.app == first.app }
      rest = rest.dropFirst(batch.count)
      desk?.ask(
        .resolve(batch.map { ($0.entry, $0.generation, $0.recipient) }),
        .resolve(batch.map(\.registration), app: apps[first.app].id))
    }
    unresolved.removeAll(keepingCapacity: true)
  }

  private static let registrationsPerLookUp = 1_000

  private func resolved(_ places: [(entry: Int, generation: Int, recipient: Int)], _ resolution: Resolution) {
    for (place, answer) in zip(places, resolution.entries) {
      let entry = table[place.entry]
      guard entry.generation == place.generation else { continue }
      entry.rows = resolution.devices
      entry.recipients[place.recipient] = recipient(for: answer, resolution.devices, entry, place.recipient)
      entry.unresolved -= 1
      if entry.unresolved == 0 { registrationsKnown(entry) }
    }
  }

  private func recipient(for answer: ResolvedRegistration, _ rows: DeviceRows, _ entry: InFlight, _ index: Int) -> Recipient {
    guard case .device(let row, let isCanonical) = answer else {
      return Recipient(
        platform: .apns, token: [], pool: -1, state: .refused(Rejection(.invalidRegistration, "no such registration")))
    }
    var found = recipient(rows, row, by: routes(for: rows.sender(row), entry))
    found.isOldRegistration = !isCanonical
    if rows[row].state == .gone { found.state = .gone }
    if let given = entry.delivery.properties.headers.string("x-push-sender"), !rows.sender(row).isEmpty,
      given != Array(rows.sender(row))
    {
      found.state = .refused(Rejection(.mismatchSenderID, "the registration belongs to another sender"))
    }
    return found
  }

  /// The device's own sender where the request names none.
  private func routes(for sender: ArraySlice<UInt8>, _ entry: InFlight) -> Routes {
    guard !sender.isEmpty, entry.delivery.properties.headers.string("x-push-sender") == nil, let app = entry.app else {
      return entry.routes
    }
    return apps[app].senders[Array(sender)] ?? entry.routes
  }

  /// The devices are known: those named twice get one push, and the request goes on as any other.
  private func registrationsKnown(_ entry: InFlight) {
    var places: [[UInt8]: Int] = [:]
    for index in entry.recipients.indices where entry.recipients.count > 1 {
      guard case .waiting = entry.recipients[index].state else { continue }
      let key = [entry.recipients[index].platform.rawValue] + entry.recipients[index].token
      if let earlier = places[key] { entry.recipients[index].state = .sameAs(earlier) } else { places[key] = index }
    }
    sendRecipients(of: entry)
  }

  // MARK: marks

  /// Remembers what an answer says against a registered token; nothing while the breaker is open.
  func mark(_ meaning: ReplyMeaning, _ entry: InFlight, _ index: Int) {
    guard desk != nil, let app = entry.app else { return }
    let recipient = entry.recipients[index]
    let isRefused = meaning.reaction.isFeedback
    if breakers[app].note(isRefused: isRefused, at: loop.wallClock) { breakerOpened(app, meaning.reason) }
    if isRefused, breakers[app].isOpen { holdCampaign(of: entry) }
    guard isRefused, !breakers[app].isOpen else { return }
    let verdict: DeviceMark.Verdict
    switch meaning.reaction {
    case .gone: verdict = .gone(since: meaning.invalidSince ?? entry.admittedAt)
    case .suspect: verdict = .suspect
    case .delivered, .drop, .retry, .credential: return
    }
    marks.append(
      DeviceMark(
        app: apps[app].id, platform: recipient.platform, token: recipient.token, verdict: verdict,
        reason: Array(meaning.reason.utf8)))
    if marks.count >= Self.marksPerWrite { writeMarks() }
  }

  private static let marksPerWrite = 500

  /// To be called about once a second. A mark that can't be written is made again by the next send's answer.
  func writeMarks() {
    guard !marks.isEmpty else { return }
    desk?.ask(.marks, .mark(marks))
    marks.removeAll(keepingCapacity: true)
  }

  private func breakerOpened(_ app: Int, _ reason: String) {
    log.error(
      "an abnormal share of tokens is refused: nothing is marked and campaigns are held; check environment, topic and registry",
      ["app": String(decoding: apps[app].id, as: UTF8.self), "percent": "\(breakers[app].percent)", "reason": reason])
  }

  private func holdCampaign(of entry: InFlight) {
    guard let campaign = entry.page?.campaign, !campaign.isEmpty, !entry.isHeldByBreaker else { return }
    entry.isHeldByBreaker = true
    ask(.hold(campaign), .setState(.held, campaign: campaign))
  }

  /// Answers come in the order of the questions: what is read of the campaign from now on, was read after it was held.
  private func held(_ campaign: [UInt8]) {
    if holds.count >= Self.mostHolds { holds.removeAll() }
    holds[campaign] = loop.wallClock
  }

  /// A hold is forgotten when its campaign runs again; those of campaigns that were cancelled instead must not pile up.
  private static let mostHolds = 1_000

  // MARK: changes

  /// A message of the registry queue: applied, answered to whoever asked, a dead letter when it is refused and nobody did.
  func acceptChange(_ delivery: Delivery) {
    counters.received += 1
    let entry = table.insert(from: .sendNormal)
    entry.delivery = delivery
    entry.messageID = delivery.properties.messageID ?? UUIDText.random()
    hold(delivery.body.count)
    let defaultApp = delivery.properties.appID ?? (apps.count == 1 ? apps[0].id : nil)
    switch RegistryChange.parse(delivery.body, defaultApp: defaultApp) {
    case .failure(let refusal): changeAnswered(entry, refusal.answer)
    case .success(let change):
      entry.change = change
      ask(.change(entry: entry.index, generation: entry.generation), .apply([change]))
    }
  }

  private func changeAnswered(_ entry: InFlight, _ answer: ChangeAnswer) {
    entry.isFinishing = true
    if let reply = publications.reply(answer.json, for: entry) {
      publish(reply)
    } else if case .refused(let error, let reason) = answer {
      let code = PushError(rawValue: error.rawValue) ?? .invalidParameters
      let words = PushError(rawValue: error.rawValue) == nil ? "\(error.rawValue): \(reason)" : reason
      counters.deadLetters += 1
      let letter = DeadLetter(error: code, reason: words, attempts: 0, failedAt: loop.wallClock)
      publish(publications.deadLetter(letter, body: entry.delivery.body, for: entry))
    }
    if entry.publications == 0 { acknowledge(entry) }
  }

  // MARK: RegistryDeskOwner

  func registryAnswered(_ ask: RegistryDesk.Ask, _ answer: RegistryAnswer) {
    switch (ask, answer) {
    case (.resolve(let places), .resolution(let resolution)): resolved(places, resolution)
    case (.marks, .marks), (.save, .done): return
    case (.hold(let campaign), .happened): held(campaign)
    case (.survey(let index, let generation), .survey(let survey)):
      with(index, generation) { surveyed($0, survey) }
    case (.create(let index, let generation), .campaign(let campaign)):
      with(index, generation) { if let campaign { campaignCreated($0, campaign) } }
    case (.account(let index, let generation), .campaign(let campaign)):
      with(index, generation) { $0.campaign = campaign }
    case (.record(let index, let generation), .record(let record)):
      with(index, generation) { entry in
        if entry.queue.isFanOut { entry.pageRecord = record } else { firstPageKnown(entry, record) }
      }
    case (.following(let index, let generation), .record(let record)):
      with(index, generation) { $0.isNextPageOut = record != nil }
    case (.page(let index, let generation), .page(let page)):
      with(index, generation) { pageRead($0, page) }
    case (.done(let index, let generation), .campaign(let campaign)):
      with(index, generation) { pageReported($0, campaign) }
    case (.finish(let index, let generation), .happened(let isClaimed)):
      with(index, generation) { finishAnswered($0, isClaimed: isClaimed) }
    case (.change(let index, let generation), .changes(let answers)):
      with(index, generation) { if let answer = answers.first { changeAnswered($0, answer) } }
    default: log.error("the registry gave an answer that was not asked for")
    }
  }

  /// The request, unless it was let go of meanwhile.
  private func with(_ index: Int, _ generation: Int, _ body: (InFlight) -> Void) {
    let entry = table[index]
    if entry.generation == generation { body(entry) }
  }

  func registryFailed(_ ask: RegistryDesk.Ask, _ reason: String) {
    switch ask {
    case .marks, .hold, .save: return
    case .resolve(let places):
      for place in places { with(place.entry, place.generation) { putOff($0, by: Self.registryDelay, reason) } }
    case .survey(let index, let generation), .create(let index, let generation), .account(let index, let generation),
      .record(let index, let generation), .following(let index, let generation), .page(let index, let generation):
      with(index, generation) { putOff($0, by: Self.registryDelay, reason) }
    case .done(let index, let generation), .finish(let index, let generation), .change(let index, let generation):
      // What is owed can't be put off: the request is held until the registry is back.
      with(index, generation) { _ in owed.append(ask) }
    }
  }

  private static let registryDelay: Int64 = 10_000

  func registryChanged(isAvailable: Bool, _ reason: String) {
    guard isAvailable else {
      return log.error("the registry can't be used; sends with provider tokens go on", ["reason": reason])
    }
    log.info("the registry is in use")
    let asks = owed
    owed.removeAll()
    for ask in asks { askAgain(ask) }
  }

  private func askAgain(_ owed: RegistryDesk.Ask) {
    switch owed {
    case .done(let index, let generation):
      with(index, generation) { entry in
        guard let page = entry.page else { return }
        ask(
          owed,
          .pageDone(
            PageReport(campaign: page.campaign, page: page.number, isLast: page.isLast, sent: page.sent, failed: page.failed)))
      }
    case .finish(let index, let generation):
      with(index, generation) { entry in
        guard let page = entry.page else { return }
        ask(owed, .finish(campaign: page.campaign, claimant: Array("\(page.number)".utf8)))
      }
    case .change(let index, let generation):
      with(index, generation) { if let change = $0.change { ask(owed, .apply([change])) } }
    default: return
    }
  }

  /// Back to the ladder as it came, at no attempt's cost; what is for now or never ends instead.
  func putOff(_ entry: InFlight, by delay: Int64, _ reason: String) {
    guard !entry.isFinishing else { return }
    guard !entry.isNowOrNever else { return reject(entry, Rejection(.unavailable, reason)) }
    entry.isFinishing = true
    counters.parked += 1
    if entry.lastFailure == nil { entry.lastFailure = (.unavailable, reason, nil) }
    // The ticket as it came: an audience sent within its request has none yet.
    if entry.page?.campaign.isEmpty == true, entry.page?.pending == nil { entry.page = nil }
    publishRetry(of: entry, at: loop.wallClock + delay)
  }
}
