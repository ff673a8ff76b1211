import DeviceRegistry
import Providers
import PushCore

/// Dispatched: recipients are translated and handed to their pools as streams become free; what doesn't fit waits as it came.
extension Pipeline {
  /// Puts the request into the lanes of the pools that reach its recipients.
  func enqueue(_ entry: InFlight) {
    let now = time.wallClock
    // One pool for nearly every request, and so no array.
    var first = -1
    var others: [Int] = []
    // A page's devices are accounted for even when it comes too late.
    let isLate = entry.isPage && now > entry.identity.deadline
    var hasRefused = false
    entry.ledger.startRound()
    entry.attempt.goesToHold = false
    for index in entry.recipients.indices {
      switch entry.recipients[index].state {
      case .refused:
        entry.ledger.opened()
        hasRefused = true
        continue
      case .gone: settleGone(entry, index)
      case .waiting: break
      case .postponed(let until) where until <= now + 500: entry.recipients[index].state = .waiting
      case .sent:
        entry.ledger.opened()
        continue
      case .postponed, .delivered, .failed, .sameAs, .unresolved: continue
      }
      guard case .waiting = entry.recipients[index].state else { continue }
      if isLate {
        noteExpired(entry, index)
        continue
      }
      let pool = entry.recipients[index].pool
      if isHeldBack(entry, by: pool) {
        putOffToHold(entry, index)
        continue
      }
      entry.ledger.opened()
      if first < 0 { first = pool } else if pool != first, !others.contains(pool) { others.append(pool) }
    }
    if entry.isReplaceable, first >= 0, entry.collapse.hasWaited || isTroubled(first) || others.contains(where: isTroubled) {
      noteWaitingHere(entry)
    }
    let waiting = PoolLanes.Waiting(request: entry.reference, since: time.now)
    if first >= 0 { append(waiting, to: first, entry) }
    for pool in others { append(waiting, to: pool, entry) }
    guard hasRefused else { return finishIfSettled(entry) }
    refusals.append(.init(request: entry.reference))
    failRefused()
  }

  /// As many devices that no pool takes as there is room for in the outbox: a list may have a thousand, and there may be many lists.
  private func failRefused() {
    while !outbox.isFull, let waiting = refusals.popFirst() {
      guard let entry = table[waiting.request], !entry.ledger.isOrphan else { continue }
      keepingOpen(entry) {
        for next in waiting.next..<entry.recipients.count {
          guard case .refused(let rejection) = entry.recipients[next].state else { continue }
          guard !outbox.isFull else {
            return refusals.prepend(.init(request: waiting.request, next: next))
          }
          failDevice(entry, next, rejection)
        }
      }
    }
  }

  /// At the end of each turn of the loop: everything that has room goes out together, and is flushed once.
  func dispatchAll() {
    beginAhead()
    lookUps?.flush()
    owners?.flush()
    failRefused()
    var all = active.reduce(0) { $0 + counted($1) }
    var waiting = active.filter { !pools[$0].isEmpty }
    if waiting.contains(where: { pools[$0].pool.openAccounts > 1 }) {
      waiting.sort { (pools[$0].servedTurn, $0) < (pools[$1].servedTurn, $1) }
    }
    turns += 1
    for index in waiting { watch(index) }
    while !waiting.isEmpty { waiting = serve(waiting, &all) }
    collapses.flush()
  }

  /// Accounts that share a connection have equal parts of its free streams.
  /// - Parameter waiting: the ones that were served longest ago first.
  /// - Returns: those that have sent their part, and have more.
  private func serve(_ waiting: [Int], _ all: inout Int) -> [Int] {
    for index in waiting { pools[index].pool.contenders += 1 }
    return waiting.filter { index in
      let own = counted(index)
      let hasMore = dispatch(index, beside: all - own)
      all += counted(index) - own
      return hasMore
    }
  }

  /// Pushes on the pool's streams, as far as they count against what others may send.
  private func counted(_ index: Int) -> Int { min(pools[index].account.inFlight, prefetch) }

  /// - Returns: true when its part of the free streams ended it.
  private func dispatch(_ index: Int, beside others: Int) -> Bool {
    let account = pools[index].account
    let contenders = account.pool.contenders
    account.pool.contenders -= 1
    guard !isDraining else { return false }
    var room = share(of: index, account.capacity, beside: others)
    guard room > 0 else {
      account.wantsCapacity()
      return false
    }
    pools[index].servedTurn = turns
    let most = contenders > 1 ? account.inFlight + (account.capacity + contenders - 1) / contenders : .max
    while !outbox.isFull {
      if room == 0 { room = share(of: index, account.capacity, beside: others) }
      guard room > 0 else { break }
      room = min(room, most - account.inFlight)
      guard room > 0 else { return !pools[index].isEmpty }
      switch pools[index].popFirst() {
      case .returned(let push):
        room -= 1
        if let entry = waitingEntry(push), !asksFirst(entry, .returned(push), index) {
          send(entry, push.recipient, by: account)
        }
      case .waiting(let waiting): sendNext(waiting, pool: index, &room)
      case nil: return false
      }
    }
    if account.capacity == 0, !pools[index].isEmpty { account.wantsCapacity() }
    return false
  }

  private func append(_ waiting: PoolLanes.Waiting, to pool: Int, _ entry: InFlight) {
    pools[pool].append(waiting, of: entry)
    wake(pool)
  }

  /// The request of a push that came back, unless it was let go of meanwhile or waits for its redelivery.
  func waitingEntry(_ back: PoolLanes.Returned) -> InFlight? {
    guard let entry = table[back.request], !entry.ledger.isOrphan, case .waiting = entry.recipients[back.recipient].state
    else { return nil }
    return entry
  }

  /// As many recipients of the request as there is room for; it goes back in front while it has more for this pool.
  private func sendNext(_ waiting: PoolLanes.Waiting, pool: Int, _ room: inout Int) {
    guard let entry = table[waiting.request], !entry.ledger.isOrphan else { return }
    guard !asksFirst(entry, .waiting(waiting), pool) else {
      room -= 1
      return
    }
    let account = pools[pool].account
    keepingOpen(entry) {
      for next in waiting.next..<entry.recipients.count {
        guard entry.recipients[next].pool == pool, case .waiting = entry.recipients[next].state else { continue }
        guard room > 0, !outbox.isFull else {
          var rest = waiting
          rest.next = next
          return pools[pool].putBack(rest, of: entry)
        }
        room -= 1
        send(entry, next, by: account)
      }
    }
  }

  private func send(_ entry: InFlight, _ index: Int, by account: PoolAccount) {
    let now = time.wallClock
    guard now <= entry.identity.deadline else { return expire(entry, index) }
    guard !isReplaced(entry, index) else { return collapse(entry, index) }
    switch account.pool.kind {
    case .apns(let apns):
      guard let template = apnsTemplate(of: entry, index, at: now) else { return }
      noteSent(entry, index, account.pool)
      apns.send(
        template.stamp(token: entry.recipients[index].token, fill: entry.fill(index)), for: account,
        tag: PushTag(entry: entry.index, recipient: index).rawValue, wantsName: entry.wantsResult(results))
    case .fcm(let fcm):
      guard let template = fcmTemplate(of: entry, index, at: now) else { return }
      noteSent(entry, index, account.pool)
      fcm.send(
        payload: template.body(token: entry.recipients[index].token, fill: entry.fill(index)), for: account,
        tag: PushTag(entry: entry.index, recipient: index).rawValue, wantsName: entry.wantsResult(results))
    }
  }

  /// The push is on its way.
  private func noteSent(_ entry: InFlight, _ index: Int, _ pool: ProviderPool) {
    entry.recipients[index].state = .sent
    entry.ledger.pushed()
    observers.note(.sent(pool), entry, index)
  }

  /// Translated once a request; a request that can't be translated fails for each of the platform's recipients.
  func apnsTemplate(of entry: InFlight, _ index: Int, at now: Int64) -> APNsTemplate? {
    let pool = entry.recipients[index].pool
    let isBroadcast = entry.recipients[index].kind == .channel
    if entry.route.apnsPool == pool, let template = entry.route.apns, template.isBroadcast == isBroadcast {
      letGoOfBody(entry)
      return template
    }
    switch makeAPNsTemplate(of: entry, pool: pool, isBroadcast: isBroadcast, at: now) {
    case .success(let template):
      letGoOfBody(entry)
      return template
    case .failure(let rejection):
      failDevice(entry, index, rejection)
      return nil
    }
  }

  /// The parsed body is the larger part of what waits for an answer; with one device, nothing of it is needed once that is translated.
  private func letGoOfBody(_ entry: InFlight) {
    if entry.recipients.count == 1, !entry.isPage, entry.collapse.arrival == nil, !entry.wantsResult(results) {
      entry.parsed = nil
    }
  }

  /// Translates, and keeps what comes of it.
  func makeAPNsTemplate(
    of entry: InFlight, pool: Int, isBroadcast: Bool, at now: Int64
  ) -> Result<APNsTemplate, Rejection> {
    var report: LossReport?
    let made = translator.apns(entry, pool: pool, isBroadcast: isBroadcast, at: now, &report)
    if case .success(let template) = made {
      observers.note(.translated(.apns), entry)
      entry.route.apns = template
      entry.route.apnsPool = pool
    }
    return made
  }

  /// What devices of a list take may be too large for its topics.
  func fcmTemplate(of entry: InFlight, _ index: Int, at now: Int64) -> FCMTemplate? {
    switch entry.route.fcm.map({ .success($0) }) ?? makeFCMTemplate(of: entry, at: now) {
    case .success(let template):
      guard entry.recipients[index].kind != .device, let request = entry.request,
        let refusal = template.refusalForTopics(of: request)
      else { return template }
      failDevice(entry, index, refusal)
    case .failure(let rejection): failDevice(entry, index, rejection)
    }
    return nil
  }

  func makeFCMTemplate(of entry: InFlight, at now: Int64) -> Result<FCMTemplate, Rejection> {
    var report: LossReport?
    // What FCM only validates needs no page.
    let made = translator.fcm(entry, isRehearsed: entry.parsed?.isDryRun == true, at: now, &report)
    if case .success(let template) = made {
      observers.note(.translated(.fcm), entry)
      entry.route.fcm = template
    }
    return made
  }
}

extension Pipeline.Routes {
  /// The pool that reaches a device of the registry.
  func pool(of platform: Platform, _ environment: DeviceEnvironment) -> Int? {
    switch (platform, environment) {
    case (.fcm, _): fcm
    case (.apns, .production): production?.pool
    case (.apns, .sandbox): sandbox?.pool
    case (.apns, .unspecified): apns?.pool
    }
  }

  /// Of tokens that came with a request.
  func apnsRoute(_ environment: APNsConfiguration.Environment?) -> Pipeline.APNsRoute? {
    switch environment {
    case nil: apns
    case .production?: production
    case .sandbox?: sandbox
    }
  }

  func apnsSettings(of pool: Int) -> APNsSettings? {
    if let apns, apns.pool == pool { return apns.settings }
    if let production, production.pool == pool { return production.settings }
    if let sandbox, sandbox.pool == pool { return sandbox.settings }
    return broadcasts.values.first { $0.pool == pool }?.settings ?? former.last { $0.pool == pool }?.settings
  }
}
