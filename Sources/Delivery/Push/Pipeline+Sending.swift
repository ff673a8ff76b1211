import Providers
import PushCore

/// Sends: recipients wait in the lanes of their pools, and are translated when a stream is free.
extension Pipeline {
  /// Puts the request into the lanes of the pools that reach its recipients.
  func enqueue(_ entry: InFlight) {
    let now = time.wallClock
    var pools = PoolNumbers()
    // A late page's devices are counted too.
    let isLate = entry.isPage && now > entry.identity.deadline
    var hasRefused = false
    entry.ledger.startRound()
    entry.attempt.goesToHold = false
    entry.attempt.isStopped = false
    for index in entry.recipients.indices {
      switch entry.recipients[index].state {
      case .refused:
        entry.ledger.opened()
        hasRefused = true
        continue
      case .gone:
        observers.note(.failed(.notRegistered), entry, index)
        entry.recipients[index].state = .failed(.notRegistered)
        feedback.reportGone(entry, index)
        continue
      case .waiting: break
      case .postponed(let until) where until <= now + 500: entry.recipients[index].state = .waiting
      case .sent:
        entry.ledger.opened()
        continue
      case .postponed, .delivered, .failed, .sameAs, .unresolved: continue
      }
      if isLate {
        publisher.expire(entry, index)
        continue
      }
      let pool = entry.recipients[index].pool
      if dispatcher.controls.hasPoolOrders, let rejection = dispatcher.refusal(of: entry, by: pool) {
        entry.recipients[index].state = .refused(rejection)
        entry.ledger.opened()
        hasRefused = true
        continue
      }
      if dispatcher.pools[pool].bulkhead.isClosed, dispatcher.isHeldBack(entry, by: pool) {
        entry.goToHold(index, at: now, because: Dispatcher.holdReason)
        continue
      }
      entry.ledger.opened()
      pools.insert(pool)
    }
    if entry.isReplaceable, !pools.isEmpty, entry.collapse.hasWaited || pools.contains(where: dispatcher.isTroubled) {
      collapses.noteWaitingHere(entry)
    }
    dispatcher.append(entry, to: pools)
    if hasRefused { dispatcher.refuse(entry, for: self) } else { perform(entry.ledger.stepOfRecipients, entry) }
  }

  /// A stream is free for the push. It is sent, or it ends.
  func send(_ entry: InFlight, _ index: Int, by account: PoolAccount) {
    let now = time.wallClock
    guard now <= entry.identity.deadline else { return expire(entry, index) }
    guard !(entry.collapse.hasWaited && collapses.isReplaced(entry, index)) else { return collapse(entry, index) }
    let tag = PushTag(entry: entry.index, recipient: index).rawValue
    do throws(Rejection) {
      switch account.pool.kind {
      case .apns(let apns):
        let template = try translations.apns(of: entry, entry.way(index), at: now)
        // The parsed body is the larger part of an unanswered request. With a single device it isn't needed any more.
        if entry.recipients.count == 1, !entry.isPage, entry.collapse.arrival == nil, !entry.wantsResult(publisher.results) {
          entry.request = nil
        }
        noteSent(entry, index, account.pool)
        apns.send(
          template.stamp(token: entry.recipients[index].token, badge: entry.badge(index)), for: account, tag: tag,
          wantsName: entry.wantsResult(publisher.results))
      case .fcm(let fcm):
        let template = try translations.fcm(of: entry, index, at: now)
        noteSent(entry, index, account.pool)
        fcm.send(
          payload: template.body(token: entry.recipients[index].token, badge: entry.badge(index)), for: account, tag: tag,
          wantsName: entry.wantsResult(publisher.results))
      case .webpush(let webpush):
        let template = try translations.webpush(of: entry, at: now)
        guard let message = webpush.message(template, token: entry.recipients[index].token, badge: entry.badge(index)) else {
          throw .unusableSubscription
        }
        noteSent(entry, index, account.pool)
        webpush.send(message, for: account, tag: tag, wantsName: entry.wantsResult(publisher.results))
      }
    } catch {
      failDevice(entry, index, error)
    }
  }

  private func noteSent(_ entry: InFlight, _ index: Int, _ pool: ProviderPool) {
    entry.recipients[index].state = .sent
    entry.ledger.pushed()
    if dispatcher.controls.hasRates { dispatcher.controls.sent(for: entry.identity.app) }
    observers.note(.sent(pool), entry, index)
  }

  // MARK: one recipient that isn't sent to

  func leave(_ entry: InFlight, _ index: Int, by exit: Dispatcher.Exit) {
    switch exit {
    case .hold(let reason):
      entry.goToHold(index, at: time.wallClock, because: reason)
      perform(entry.ledger.closed(), entry)
    case .park(let delay, let reason): park(entry, index, delay, reason)
    case .fail(let code, let reason): fail(entry, index, code, reason: reason)
    case .expire: expire(entry, index)
    case .refused(let rejection): failDevice(entry, index, rejection)
    }
  }

  /// Puts the recipient on the ladder without counting an attempt.
  func park(_ entry: InFlight, _ index: Int, _ delay: Int64, _ reason: String) {
    guard case .waiting = entry.recipients[index].state else { return }
    guard !entry.attempt.isLast else {
      return fail(entry, index, dispatcher.pools[entry.recipients[index].pool].account.refusalCode, reason: reason)
    }
    observers.note(.parked, entry, index)
    if entry.attempt.lastFailure == nil { entry.attempt.lastFailure = (.unavailable, reason, nil) }
    settle(entry, index, .postponed(until: time.wallClock + delay))
  }

  func collapse(_ entry: InFlight, _ index: Int) {
    observers.note(.collapsed, entry, index)
    publisher.publishOptionalLetter(.collapsed, naming: index, for: entry)
    settle(entry, index, .failed(.collapsed))
  }

  /// Ends one device with a dead letter, unless its platform has a common one.
  private func failDevice(_ entry: InFlight, _ index: Int, _ rejection: Rejection) {
    if entry.isOfCampaign || !publisher.leavesLetter(rejection) {
      if rejection.code == .cancelled, !entry.isPage, entry.wantsResult(publisher.results) {
        entry.attempt.reasons[index] = rejection.reason
      }
      settle(entry, index, .failed(rejection.code))
    } else {
      fail(entry, index, rejection.code, reason: rejection.reason)
    }
  }

  // MARK: a worker that stops

  /// A stopping worker leaves the rest of a begun list to another worker, with the outcomes so far. The broker redelivers
  /// unbegun requests.
  package func handOverBegunLists() {
    for entry in table.acknowledgeable where !entry.ledger.isConcluded && entry.hasBegun {
      keepingOpen(entry) {
        for index in entry.recipients.indices {
          if case .waiting = entry.recipients[index].state { handOver(entry, index) }
        }
      }
    }
  }

  /// Hands over one target of such a list. A request for now or never fails instead.
  func handOver(_ entry: InFlight, _ index: Int) {
    if entry.attempt.isLast { return fail(entry, index, .unavailable, reason: "the worker was stopped before this was sent") }
    settle(entry, index, .postponed(until: time.wallClock))
  }
}

extension Rejection {
  fileprivate static let unusableSubscription = Rejection(
    .mismatchSenderID, "the subscription can't be encrypted for, or its VAPID key is not configured")
}
