import DeviceRegistry
import PushCore

/// The places where a newer request with the same collapse key replaces this one. `app` is the id of the request's application.
extension InFlight {
  /// The request's place in the order of requests with its key.
  var collapseOrder: CollapseOrder {
    let arrival = self.collapse.arrival ?? Arrival(published: self.identity.published, number: 0)
    return CollapseOrder(
      published: arrival.published, arrived: arrival.number, message: MessageKey.of(self.identity.messageID))
  }

  private func collapseKeys(_ app: [UInt8]) -> CollapseKeys? {
    if let keys = self.collapse.keys { return keys }
    guard let request = self.request else { return nil }
    let keys = CollapseKeys(request, app: app)
    self.collapse.keys = keys
    return keys
  }

  /// The note of a broadcast, the same for each page and delivery. The order is by the producer's time, then by the campaign's
  /// creation. Nil if nothing replaces it.
  func collapseNote(of campaign: Campaign, _ app: [UInt8]) -> CollapseNote? {
    let properties = self.delivery.properties
    guard let request = self.request, request.isReplaceable, self.broadcast.work != nil,
      let place = collapseKeys(app)?.place(broadcastTo: request.audienceName, sender: properties.headers.sender)
    else { return nil }
    // Pages carry the time when a worker first saw the request, but not an implausible timestamp.
    let date = properties.timestamp == nil ? min(self.identity.published, campaign.createdAt) : campaign.createdAt
    let order = CollapseOrder(
      published: Intake.dateForOrder(properties, published: date, at: campaign.createdAt),
      arrived: campaign.createdAt * 1_000, message: MessageKey.of(self.identity.messageID))
    return CollapseNote(place: place, order: order, until: self.identity.deadline)
  }

  /// The places of the devices to send to, under every known name; before the look-up, the places of the targets.
  func collapsePlaces(_ app: [UInt8]) -> [CollapsePlace] {
    guard !self.recipients.isEmpty else { return placesOfTargets(app) }
    let places = self.recipients.indices.flatMap { index -> [CollapsePlace] in
      self.recipients[index].state.isToBeSent ? placesOfDevice(index, app) : []
    }
    return places.isEmpty ? [] : places + placesOfAudience(app)
  }

  func collapsePlaces(of index: Int, _ app: [UInt8]) -> [CollapsePlace] {
    placesOfDevice(index, app) + placesOfAudience(app)
  }

  /// A newer request to the same user or group goes to all of these devices, even before its look-up.
  private func placesOfAudience(_ app: [UInt8]) -> [CollapsePlace] {
    self.request?.audience == nil ? [] : placesOfTargets(app)
  }

  private func placesOfDevice(_ index: Int, _ app: [UInt8]) -> [CollapsePlace] {
    let recipient = self.recipients[index]
    // A channel has no collapse id.
    guard recipient.kind != .channel, !recipient.token.isEmpty, let keys = collapseKeys(app) else { return [] }
    let places = [
      keys.place(recipient.platform, token: recipient.token),
      registration(of: index).flatMap { keys.place(registration: $0) },
    ]
    return places.compactMap(\.self)
  }

  private func placesOfTargets(_ app: [UInt8]) -> [CollapsePlace] {
    guard let request = self.request, let keys = collapseKeys(app) else { return [] }
    func place(of target: Target) -> CollapsePlace? {
      switch target {
      case .apns(let token): keys.place(.apns, token: token)
      case .fcm(let token), .fcmTopics(let token): keys.place(.fcm, token: token)
      case .webpush(let token): keys.place(.webpush, token: token)
      case .registration, .group, .user: target.registryName.flatMap { keys.place(registration: $0) }
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

/// The arrival of a request with a collapse key, for the order of replacement.
struct Arrival {
  /// See ``Intake/dateForOrder(_:published:at:)``.
  var published: Int64
  /// See ``Collapses/arrival()``.
  var number: Int64
}
