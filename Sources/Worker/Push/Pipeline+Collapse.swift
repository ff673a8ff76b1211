import DeviceRegistry
import PushCore

/// Of requests with a collapse key that wait, only the newest for each device and key goes out: on the ladder, in a hold queue, or here while the
/// provider is in trouble. What has never waited is sent, and nobody is asked. Broadcasts are compared with those to the same audience.
extension Pipeline: CollapsesHandler {
  /// It has come, with a collapse key.
  func noteArrival(_ entry: InFlight, _ record: RetryRecord?) {
    // What is left of a small audience comes from the ladder, and its place in the order was noted as it went there.
    let isRest = entry.broadcast.page?.campaign.isEmpty == true
    entry.collapse.hasWaited = record != nil || isRest || entry.broadcast.page?.hasWaited == true
    // A broadcast's place in the order is its campaign's.
    guard !entry.isOfCampaign, entry.parsed?.audience?.isSmall != false else { return }
    let date = Intake.dateForOrder(entry.delivery.properties, published: entry.identity.published, at: time.wallClock)
    entry.collapse.arrival =
      record?.arrival ?? Arrival(published: date, number: isRest ? 0 : entry.source.takenAhead?.number ?? collapses.arrival())
  }

  // MARK: what waits

  /// It goes to the ladder or to a hold queue: older ones are not sent any more. Owed, like what is published beside it.
  func noteWaiting(_ entry: InFlight) {
    guard entry.collapse.arrival != nil else { return }
    let order = order(of: entry)
    let notes = places(of: entry).map { CollapseNote(place: $0, order: order, until: entry.identity.deadline) }
    for note in notes { collapses.learn(order, in: note.place) }
    if collapses.store(notes, for: entry.reference) { entry.ledger.owes() }
  }

  func noted(_ requests: [RequestReference]) {
    for request in requests { if let entry = table[request] { consequenceEnded(of: entry) } }
  }

  /// A broadcast begins: older ones to the same audience are not sent any more where they wait. Owed, like its first page.
  func noteBegun(_ entry: InFlight, _ campaign: Campaign) {
    guard let note = broadcastNote(of: entry, campaign) else { return }
    if collapses.store([note], for: entry.reference) { entry.ledger.owes() }
  }

  /// It waits here, as its provider is in trouble, or has waited before.
  func noteWaitingHere(_ entry: InFlight) {
    // A broadcast was noted when it began.
    guard entry.collapse.arrival != nil else { return entry.collapse.hasWaited = true }
    let order = order(of: entry)
    let places = places(of: entry)
    for place in places { collapses.learn(order, in: place) }
    // What has waited elsewhere was stored when it went there.
    if !entry.collapse.hasWaited {
      _ = collapses.store(places.map { CollapseNote(place: $0, order: order, until: entry.identity.deadline) }, for: nil)
    }
    entry.collapse.hasWaited = true
  }

  /// What is in the pool's lanes waits from here on.
  func troubleBegan(_ pool: Int) {
    for entry in table.entries where entry.isInUse && entry.isReplaceable && !entry.ledger.isConcluded {
      let waits = entry.recipients.contains { if case .waiting = $0.state { $0.pool == pool } else { false } }
      if waits { noteWaitingHere(entry) }
    }
  }

  /// It has reached a device for which older ones wait.
  func noteDelivered(_ entry: InFlight, _ index: Int) {
    guard entry.collapse.arrival != nil, !collapses.isEmpty else { return }
    let order = order(of: entry)
    var notes: [CollapseNote] = []
    for place in places(of: entry, index) {
      guard let newest = collapses.newest(in: place), newest.isReplaced(by: order) else { continue }
      collapses.learn(order, in: place)
      notes.append(CollapseNote(place: place, order: order, until: entry.identity.deadline))
    }
    _ = collapses.store(notes, for: nil)
  }

  // MARK: what is to be sent

  /// Whether other shards are asked first, if they know of a newer one.
  func asksFirst(_ entry: InFlight, _ next: PoolLanes.Next, _ pool: Int) -> Bool {
    guard entry.collapse.hasWaited, entry.isReplaceable, collapses.isShared else { return false }
    if let time = entry.collapse.knownAt, self.time.now.seconds(since: time) < Self.longestKnown { return false }
    let places = entry.collapse.broadcastNote.map { [$0.place] } ?? places(of: entry)
    guard !places.isEmpty else { return false }
    collapses.ask(.init(request: entry.reference, places: places, next: next, pool: pool))
    return true
  }

  /// Seconds for which an answer is good.
  private static let longestKnown = 1.0

  func answered(_ questions: [Collapses.Question]) {
    for question in questions.reversed() {
      guard let entry = table[question.request], !entry.ledger.isOrphan else { continue }
      entry.collapse.knownAt = time.now
      switch question.next {
      case .returned(let push): pools[question.pool].giveBack(push, of: entry)
      case .waiting(let waiting): pools[question.pool].putBack(waiting, of: entry)
      }
      wake(question.pool)
    }
    time.ensureHooksRun()
  }

  /// A newer one has taken its place for the device.
  func isReplaced(_ entry: InFlight, _ index: Int) -> Bool {
    guard entry.collapse.hasWaited, entry.isReplaceable, !collapses.isEmpty else { return false }
    if let note = entry.collapse.broadcastNote {
      return collapses.newest(in: note.place).map { note.order.isReplaced(by: $0) } ?? false
    }
    let order = order(of: entry)
    return places(of: entry, index).contains { place in
      collapses.newest(in: place).map { order.isReplaced(by: $0) } ?? false
    }
  }

  func collapse(_ entry: InFlight, _ index: Int) {
    observers.note(.collapsed, entry, index)
    publishOptionalLetter(.collapsed, naming: index, of: entry)
    settle(entry, index, .failed(.collapsed))
  }

  // MARK: places

  private func order(of entry: InFlight) -> CollapseOrder {
    let arrival = entry.collapse.arrival ?? Arrival(published: entry.identity.published, number: 0)
    return CollapseOrder(
      published: arrival.published, arrived: arrival.number, message: MessageKey.of(entry.identity.messageID))
  }

  private func keys(of entry: InFlight) -> CollapseKeys? {
    if let keys = entry.collapse.keys { return keys }
    guard let request = entry.request else { return nil }
    let keys = CollapseKeys(request, app: appID(of: entry))
    entry.collapse.keys = keys
    return keys
  }

  /// Of a broadcast, the same for each of its pages and for each delivery of them: by the producer's time, then by when its campaign was
  /// created. Nil where nothing replaces it.
  func broadcastNote(of entry: InFlight, _ campaign: Campaign) -> CollapseNote? {
    guard entry.parsed?.isCollapsible == true, let request = entry.request, let audience = entry.broadcast.work?.audience,
      let keys = keys(of: entry)
    else { return nil }
    let properties = entry.delivery.properties
    let name = audience.name(request.document.string(request.targetNode))
    guard let place = keys.place(broadcastTo: name, sender: properties.headers.sender) else { return nil }
    // What a worker was first to date goes along from page to page. A date that is no clock's doesn't.
    let date = properties.timestamp == nil ? min(entry.identity.published, campaign.createdAt) : campaign.createdAt
    let order = CollapseOrder(
      published: Intake.dateForOrder(properties, published: date, at: campaign.createdAt),
      arrived: campaign.createdAt * 1_000, message: MessageKey.of(entry.identity.messageID))
    return CollapseNote(place: place, order: order, until: entry.identity.deadline)
  }

  /// Of the devices that it waits for, by all that is known of them; of what wasn't looked up, by what the request names.
  private func places(of entry: InFlight) -> [CollapsePlace] {
    guard !entry.recipients.isEmpty else { return placesOfTargets(of: entry) }
    let places = entry.recipients.indices.flatMap { index -> [CollapsePlace] in
      switch entry.recipients[index].state {
      case .waiting, .postponed: return placesOfDevice(entry, index)
      case .unresolved, .gone, .refused, .sent, .delivered, .failed, .sameAs: return []
      }
    }
    return places.isEmpty ? [] : places + placesOfAudience(of: entry)
  }

  private func places(of entry: InFlight, _ index: Int) -> [CollapsePlace] {
    placesOfDevice(entry, index) + placesOfAudience(of: entry)
  }

  /// A newer one to the same user or group goes to all of these devices, whether they have been looked up for it or not.
  private func placesOfAudience(of entry: InFlight) -> [CollapsePlace] {
    entry.parsed?.audience == nil ? [] : placesOfTargets(of: entry)
  }

  private func placesOfDevice(_ entry: InFlight, _ index: Int) -> [CollapsePlace] {
    let recipient = entry.recipients[index]
    // A channel takes no collapse id.
    guard recipient.kind != .channel, !recipient.token.isEmpty, let keys = keys(of: entry) else { return [] }
    let places = [
      keys.place(recipient.platform, token: recipient.token),
      entry.registration(of: index).flatMap { keys.place(registration: $0) },
    ]
    return places.compactMap(\.self)
  }

  private func placesOfTargets(of entry: InFlight) -> [CollapsePlace] {
    guard let request = entry.request, let keys = keys(of: entry) else { return [] }
    func place(of target: Target) -> CollapsePlace? {
      switch target {
      case .apns(let token): keys.place(.apns, token: token[...])
      case .fcm(let token), .fcmTopics(let token): keys.place(.fcm, token: token[...])
      case .registration(let id), .group(let id): keys.place(registration: id)
      case .user(let name): keys.place(registration: Array("/users/".utf8) + name)
      case .channel, .topic, .all, .invalid: nil
      }
    }
    switch request.targets {
    case .one(let target): return [place(of: target)].compactMap(\.self)
    case .list(let targets): return targets.compactMap(place)
    case .condition: return []
    }
  }
}

/// When a request with a collapse key came, for the order of those that replace each other.
struct Arrival {
  /// See ``Intake/dateForOrder(_:published:at:)``.
  var published: Int64
  /// See ``Collapses/arrival()``.
  var number: Int64
}
