import DeviceRegistry
import PushCore

/// Before the first push of a request that says something of badges, each device's counter is moved, once for the device and message; and of
/// one whose devices acknowledge it by its key, the registry keeps the message id.
extension Pipeline {
  /// Into the lanes, as soon as the registry has what the request asks for.
  func enqueueCounted(_ entry: InFlight) {
    if entry.parsed?.isDryRun == true {
      // One that isn't rehearsed yet goes on with what it waits for.
      if entry.attempt.dryRun != nil { enqueue(entry) }
      return
    }
    if entry.route.routes.isUPMC, lookUps != nil {
      switch entry.registry.keeping {
      case .kept, .failed: break
      case .asked: return
      case nil: return keepMessage(entry)
      }
    }
    guard hasPage(entry) else { return }
    guard let badge = entry.parsed?.badge else { return enqueue(entry) }
    switch entry.registry.badges {
    case .known: enqueue(entry)
    case .counting: return
    case nil where lookUps == nil: badgesCounted(entry, [])
    case nil: count(badge, entry)
    }
  }

  /// A dry run counts nobody: it has the number that a push would have, and what has no counter is refused as a push would be.
  func beginDryRun(_ entry: InFlight) {
    guard case .automatic? = entry.parsed?.badge, entry.registry.badges == nil else { return concludeDryRun(entry) }
    if lookUps == nil { badgesCounted(entry, []) } else { count(.automatic, entry) }
  }

  private func keepMessage(_ entry: InFlight) {
    entry.registry.keeping = .asked
    broadcasts.report(.keepMessage(entry.identity.messageID), for: entry) { broadcasts in
      { entry, _ in
        entry.registry.keeping = .kept
        broadcasts.pipeline.enqueueUnlessOver(entry)
      }
    } orElse: { broadcasts in
      { entry, error in
        entry.registry.keeping = .failed
        if entry.recipients.contains(where: { $0.row >= 0 }) {
          broadcasts.pipeline.refuseOrPutOff(entry, error)
        } else {
          broadcasts.pipeline.enqueueUnlessOver(entry)
        }
      }
    }
  }

  func enqueueUnlessOver(_ entry: InFlight) {
    if !entry.ledger.isConcluded, !entry.ledger.isOrphan { enqueueCounted(entry) }
  }

  private func count(_ badge: SendRequest.Badge, _ entry: InFlight) {
    var places: [Int] = []
    var devices: [BadgeCount.Device] = []
    let refusals = refusals(of: entry)
    for (index, recipient) in entry.recipients.enumerated() where recipient.state.isToBeSent {
      // What is never sent moves no counter.
      if let rejection = refusals[PushWay(recipient)] {
        entry.recipients[index].state = .refused(rejection)
        continue
      }
      places.append(index)
      if recipient.row >= 0, let rows = entry.registry.rows {
        devices.append(.number(rows[recipient.row].id))
      } else {
        devices.append(.token(recipient.platform, Array(recipient.token)))
      }
    }
    guard !devices.isEmpty else { return badgesCounted(entry, []) }
    let (rule, isRegistryNeeded): (BadgeCount.Rule, Bool) =
      switch badge {
      case .automatic:
        (
          entry.parsed?.isDryRun == true ? .look : .up,
          entry.parsed?.countsBadge != true || entry.recipients.contains { $0.row >= 0 }
        )
      case .number(let number): (.set(Int64(number)), false)
      }
    entry.registry.badges = .counting
    let count = BadgeCount(app: appID(of: entry), messageID: entry.identity.messageID, rule: rule, devices: devices)
    broadcasts.report(.countBadges(count), for: entry) { broadcasts in
      { entry, numbers in
        var badges = [Int64?](repeating: nil, count: entry.recipients.count)
        for (place, number) in zip(places, numbers) where place < badges.count { badges[place] = number }
        broadcasts.pipeline.badgesCounted(entry, badges)
      }
    } orElse: { broadcasts in
      { entry, error in
        entry.registry.badges = nil
        // A number is sent as it is, registry or not.
        if isRegistryNeeded {
          broadcasts.pipeline.refuseOrPutOff(entry, error)
        } else {
          broadcasts.pipeline.badgesCounted(entry, [])
        }
      }
    }
  }

  /// Why a request can't be translated, by the ways for which that is so. The other ways are sent.
  private func refusals(of entry: InFlight) -> [PushWay: Rejection] {
    var refusals: [PushWay: Rejection] = [:]
    for way in entry.waysToSend {
      if case .failure(let rejection) = translateForSending(entry, way) { refusals[way] = rejection }
    }
    return refusals
  }

  private func translateForSending(_ entry: InFlight, _ way: PushWay) -> Result<Void, Rejection> {
    guard entry.parsed?.isDryRun == false else {
      var report: LossReport?
      return translate(entry, way.platform, pool: way.pool, isBroadcast: way.isChannel, &report) ?? .success(())
    }
    return switch way.platform {
    case .apns:
      makeAPNsTemplate(of: entry, pool: way.pool, isBroadcast: way.isChannel, at: time.wallClock).map { _ in }
    case .fcm: makeFCMTemplate(of: entry, at: time.wallClock).map { _ in }
    }
  }

  private func badgesCounted(_ entry: InFlight, _ badges: [Int64?]) {
    guard !entry.ledger.isConcluded else { return }
    entry.registry.badges = .known(badges)
    if case .automatic? = entry.parsed?.badge, entry.parsed?.countsBadge != true {
      for index in entry.recipients.indices where index >= badges.count || badges[index] == nil {
        if entry.recipients[index].state.isToBeSent { entry.recipients[index].state = .refused(.noCounter) }
      }
    }
    if entry.parsed?.isDryRun == true {
      concludeDryRun(entry)
    } else if !entry.ledger.isOrphan {
      enqueue(entry)
    }
  }

  /// What differs between the pushes of the request's translation.
  func fill(_ entry: InFlight, _ index: Int) -> DeviceFill {
    guard case .known(let badges)? = entry.registry.badges else { return DeviceFill() }
    return DeviceFill(badge: index < badges.count ? badges[index] : nil)
  }
}

extension Rejection {
  static let noCounter = Rejection(
    .invalidParameters, "notification.badge: auto is for registered devices, and this is none")
}
