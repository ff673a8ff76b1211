import DeviceRegistry
import PushCore

/// Updates each device's badge counter before the push, once for each device and message. A dry run only reads the counters.
enum BadgeGate: Gate {
  static func concerns(_ entry: InFlight, in pipeline: Pipeline) -> Bool {
    switch entry.request?.badgeOfCounter {
    case nil: false
    case .automatic: true
    case .number: entry.request?.isDryRun != true
    }
  }

  static func pass(_ entry: InFlight, in pipeline: Pipeline) -> GateAnswer {
    guard let badge = entry.request?.badgeOfCounter, pipeline.registry != nil else {
      entry.refuseWithoutCounter()
      return .go
    }
    return count(badge, entry, in: pipeline)
  }

  private static func count(_ badge: SendRequest.Badge, _ entry: InFlight, in pipeline: Pipeline) -> GateAnswer {
    var places: [Int] = []
    var devices: [BadgeCount.Device] = []
    let refusals = refusals(of: entry, in: pipeline)
    for index in entry.recipients.indices where entry.recipients[index].state.isToBeSent {
      // A push that is never sent changes no counter.
      if !refusals.isEmpty, let rejection = refusals[entry.way(index)] {
        entry.recipients[index].state = .refused(rejection)
        continue
      }
      places.append(index)
      if entry.recipients[index].row >= 0, let rows = entry.registry.rows {
        devices.append(.number(rows[entry.recipients[index].row].id))
      } else {
        devices.append(.token(entry.recipients[index].platform, Array(entry.recipients[index].token)))
      }
    }
    guard !devices.isEmpty else { return .go }
    let rule: BadgeCount.Rule =
      switch badge {
      case .automatic: entry.request?.isDryRun == true ? .look : .up
      case .number(let number): .set(Int64(number))
      }
    let count = BadgeCount(
      app: pipeline.apps.id(of: entry.identity.app), messageID: entry.identity.messageID, rule: rule, devices: devices,
      page: entry.broadcast.page.flatMap { $0.campaign.isEmpty ? nil : .init(campaign: $0.campaign, number: $0.number) })
    return pipeline.wait(at: entry, for: .countBadges(count)) { entry, numbers in
      var badges = numbers
      if places.count < entry.recipients.count {
        badges = entry.recipients.map { _ in nil }
        for (place, number) in zip(places, numbers) where place < badges.count { badges[place] = number }
      }
      entry.registry.badges = badges
      entry.refuseWithoutCounter()
    } orElse: {
      !$0.needsCounter
    }
  }

  /// The rejections of pushes that can't be translated. Other pushes are sent.
  private static func refusals(of entry: InFlight, in pipeline: Pipeline) -> [PushWay: Rejection] {
    var refusals: [PushWay: Rejection] = [:]
    for way in entry.waysToSend {
      do throws(Rejection) { try translate(entry, way, pipeline.translations, at: pipeline.time.wallClock) } catch {
        refusals[way] = error
      }
    }
    return refusals
  }

  private static func translate(
    _ entry: InFlight, _ way: PushWay, _ translations: Translations, at now: Int64
  ) throws(Rejection) {
    guard entry.request?.isDryRun == false else {
      var report: LossReport?
      _ = try translations.translator.rehearse(entry, way, at: now, &report)?.get()
      return
    }
    switch way.platform {
    case .apns: _ = try translations.apns(of: entry, way, at: now)
    case .fcm: _ = try translations.fcm(of: entry, at: now)
    case .webpush: _ = try translations.webpush(of: entry, at: now)
    }
  }
}

extension InFlight {
  /// The counter of a recipient's device; nil if it has none.
  func badge(_ index: Int) -> Int64? {
    let badges = self.registry.badges
    return index < badges.count ? badges[index] : nil
  }

  /// A fixed number, and a request's own number for devices outside the registry, can be sent without the registry.
  fileprivate var needsCounter: Bool {
    guard case .automatic? = self.request?.badgeOfCounter else { return false }
    return self.request?.countsBadge != true || self.recipients.contains { $0.row >= 0 }
  }

  /// Refuses devices without a counter if the badge is `auto`.
  fileprivate func refuseWithoutCounter() {
    guard case .automatic? = self.request?.badgeOfCounter, self.request?.countsBadge != true else { return }
    for index in self.recipients.indices where index >= self.registry.badges.count || self.registry.badges[index] == nil {
      if self.recipients[index].state.isToBeSent { self.recipients[index].state = .refused(.noCounter) }
    }
  }
}

extension Rejection {
  static let noCounter = Rejection(
    .invalidParameters, "notification.badge: auto is for registered devices, and this is none")
}
