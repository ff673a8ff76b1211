import DeviceRegistry
import PushCore
import Settings

/// Makes recipients from a request's targets and the registry's rows.
struct RecipientResolver {
  let apps: Applications
  let lookUps: LookUps?

  func addRecipients(to entry: InFlight, by routes: SenderRoutes) {
    guard let request = entry.request else { return }
    switch request.targets {
    case .one(let target):
      entry.recipients.append(recipient(for: target, by: routes, entry.route.environment))
      if case .unresolved = entry.recipients[0].state { lookUp(target, for: entry) }
      if case .fcm = target, lacksFCM(entry, routes) {
        refuseUnless(FCMAddress.canBeGiven(request.document.string(request.targetNode)), 0, entry)
      }
    case .list(let targets):
      var places: [[UInt8]: Int] = [:]
      var texts: [[UInt8]] = []
      let lacksFCM = lacksFCM(entry, routes)
      for (index, target) in targets.enumerated() {
        entry.recipients.append(recipient(for: target, by: routes, entry.route.environment))
        let last = entry.recipients.count - 1
        if case .unresolved = entry.recipients[last].state { lookUp(target, for: entry) }
        if case .fcm = target, lacksFCM {
          if texts.isEmpty { texts = request.targetTexts }
          refuseUnless(FCMAddress.canBeGiven(texts[index]), last, entry)
        }
        let key: [UInt8]
        switch entry.recipients[last].state {
        case .waiting:
          let kind = entry.recipients[last].kind == .channel ? 0xFE : entry.recipients[last].platform.rawValue
          key = [kind] + entry.recipients[last].identity
        // An unreachable entry has one dead letter, even if the list repeats it.
        case .refused:
          if texts.isEmpty { texts = request.targetTexts }
          key = [0xFF] + texts[index]
        default: continue
        }
        if let earlier = places[key] { entry.recipients[last].state = .sameAs(earlier) } else { places[key] = last }
      }
    case .condition:
      entry.recipients.append(unreachable("condition: needs a registry, and none is configured", .invalidParameters))
    }
  }

  private func lacksFCM(_ entry: InFlight, _ routes: SenderRoutes) -> Bool {
    guard routes.fcm == nil, let app = entry.identity.app else { return false }
    return apps[app].lacksFCM
  }

  private func refuseUnless(_ canBeToken: Bool, _ place: Int, _ entry: InFlight) {
    if !canBeToken { entry.recipients[place].state = .refused(.noToken) }
  }

  /// Looks up a registration, or a list's user, device group, topic or whole application, together with the turn's others.
  private func lookUp(_ target: Target, for entry: InFlight) {
    guard let lookUps, let app = entry.identity.app, let id = target.registryName else { return }
    let place = RecipientReference(request: entry.reference, recipient: entry.recipients.count - 1)
    lookUps.append(LookUp(app: apps[app].id, registration: id, kind: entry.request?.tokenKind), for: place)
    entry.registry.unresolved += 1
  }

  private func recipient(
    for target: Target, by routes: SenderRoutes, _ environment: APNsConfiguration.Environment?
  ) -> Recipient {
    switch target {
    case .apns(let token):
      guard let pool = routes.apnsRoute(environment)?.pool else {
        return unreachable("the sender has no APNs credential", .mismatchSenderID, .apns, token)
      }
      return Recipient(platform: .apns, token: token, pool: pool)
    case .channel(let id):
      guard let route = routes.ofChannels(environment) else {
        return unreachable("the sender has no APNs credential", .mismatchSenderID)
      }
      return Recipient(platform: .apns, token: id, pool: route.pool, kind: .channel)
    case .fcm(let token), .fcmTopics(let token):
      guard let pool = routes.fcm else {
        return unreachable("the sender has no FCM credential", .mismatchSenderID, .fcm, token)
      }
      let kind: Recipient.Kind = if case .fcmTopics = target { .topics } else { .device }
      return Recipient(platform: .fcm, token: token, pool: pool, kind: kind)
    case .webpush(let token):
      guard let webpush = routes.webpush else {
        return unreachable("the sender has no web push credential", .mismatchSenderID, .webpush, token)
      }
      switch webpush.pool(for: token) {
      case .success(let pool): return Recipient(platform: .webpush, token: token, pool: pool)
      case .failure(let rejection): return unreachable(rejection.reason, rejection.code, .webpush, token)
      }
    case .registration where lookUps != nil, .user where lookUps != nil, .group where lookUps != nil,
      .topic where lookUps != nil, .all where lookUps != nil:
      return Recipient(platform: .apns, token: [], pool: -1, state: .unresolved)
    case .topic, .all, .user, .group, .registration:
      return unreachable("to: needs a registry, and none is configured", .invalidParameters)
    case .invalid(let rejection): return unreachable(rejection.reason, rejection.code)
    }
  }

  private func unreachable(_ reason: String, _ code: PushError, _ platform: Platform = .apns, _ token: ArraySlice<UInt8> = [])
    -> Recipient
  {
    Recipient(platform: platform, token: token, pool: -1, state: .refused(Rejection(code, reason)))
  }

  // MARK: the registry's answers

  func resolve(_ place: Int, _ answer: ResolvedRegistration, _ rows: DeviceRows, _ entry: InFlight) {
    entry.registry.rows = rows
    if case .devices(let members) = answer {
      addMembers(members, of: place, rows, entry)
    } else {
      entry.recipients[place] = recipient(for: answer, rows, entry)
    }
    entry.registry.unresolved -= 1
    if entry.registry.unresolved == 0 { mergeRepeated(entry) }
  }

  func addRecipients(of rows: DeviceRows, to entry: InFlight, skipping settled: SettledDevices) {
    entry.registry.rows = rows
    entry.recipients.reserveCapacity(rows.count)
    for index in 0..<rows.count where !settled.contains(rows[index].id) {
      entry.recipients.append(recipient(rows, index, entry))
    }
  }

  /// The first device of a list's user, group or topic replaces the target; the others follow after the list's entries.
  private func addMembers(_ members: [Int], of place: Int, _ rows: DeviceRows, _ entry: InFlight) {
    guard let first = members.first, entry.recipients.count + members.count <= Self.mostRecipients else {
      let reason =
        members.isEmpty
        ? "no such user, device group or topic, or no device of it is registered for this push type, or it has too many for a list"
        : "the list has more than \(Self.mostRecipients) devices and targets: send to this target alone"
      entry.recipients[place].state = .refused(Rejection(.invalidRegistration, reason))
      return
    }
    entry.recipients[place] = recipient(rows, first, entry)
    let start = entry.recipients.count
    for member in members.dropFirst() { entry.recipients.append(recipient(rows, member, entry)) }
    entry.registry.members.append((place, start..<entry.recipients.count))
  }

  /// The limit of recipients whose progress fits a header on the ladder, within a frame of 128 KiB.
  private static let mostRecipients = 1_500

  private func recipient(for answer: ResolvedRegistration, _ rows: DeviceRows, _ entry: InFlight) -> Recipient {
    guard case .device(let row, let isCanonical) = answer else {
      return unreachable("no such registration", .invalidRegistration)
    }
    var found = recipient(rows, row, entry)
    found.isOldRegistration = !isCanonical
    return found
  }

  /// Merges devices that are named twice, once all are known.
  private func mergeRepeated(_ entry: InFlight) {
    var places: [[UInt8]: Int] = [:]
    for index in entry.recipients.indices where entry.recipients.count > 1 {
      // A token in the request is sent to even if the registry has it as gone.
      var kind: UInt8 = 0
      switch entry.recipients[index].state {
      case .waiting: break
      case .gone: kind = 1
      case .unresolved, .refused, .sent, .delivered, .failed, .postponed, .sameAs: continue
      }
      if entry.recipients[index].kind == .channel { kind = 2 }
      let key = [kind, entry.recipients[index].platform.rawValue] + entry.recipients[index].identity
      if let earlier = places[key] { entry.recipients[index].state = .sameAs(earlier) } else { places[key] = index }
    }
  }

  /// A registered device, with the pool of its sender and environment.
  private func recipient(_ rows: DeviceRows, _ index: Int, _ entry: InFlight) -> Recipient {
    let row = rows[index]
    var pool = -1
    var state = Recipient.State.waiting
    if row.state == .gone {
      state = .gone
    } else if let routes = row.hasSender ? routes(for: rows.sender(index), entry) : entry.route.routes {
      if let number = routes.pool(of: row.platform, row.environment) {
        pool = number
      } else if case .webpush = row.platform, let webpush = routes.webpush {
        switch webpush.pool(for: rows.token(index)) {
        case .success(let number): pool = number
        case .failure(let rejection): state = .refused(rejection)
        }
      } else {
        state = .refused(.noCredential)
      }
    } else {
      state = .refused(.otherSender)
    }
    return Recipient(platform: row.platform, token: rows.token(index), pool: pool, state: state, row: index)
  }

  /// The device's own sender if the request names none. Nil if the request names another sender, or the application has senders
  /// but not this one (GS-083).
  private func routes(for sender: ArraySlice<UInt8>, _ entry: InFlight) -> SenderRoutes? {
    guard let app = entry.identity.app else { return entry.route.routes }
    if let named = entry.delivery.properties.headers.sender {
      return named.elementsEqual(sender) ? entry.route.routes : nil
    }
    return apps[app].senders[Array(sender)] ?? (apps[app].senders.isEmpty ? entry.route.routes : nil)
  }
}

extension Rejection {
  static let noToken = Rejection(.invalidRegistration, "not a token of APNs or FCM")
}
