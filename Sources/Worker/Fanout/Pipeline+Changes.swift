import AMQP
import PushCore
import Storage

/// Changes of the registry that come by the registry queue, in their order.
extension Pipeline: ChangeFeedHandler {
  /// A change that the registry doesn't have yet.
  struct OwedChange {
    var entry: Int
    var generation: Int
    /// Ascends in the order of arrival.
    var sequence: Int
  }

  /// Applied, answered to whoever asked, a dead letter when any of it is refused and nobody did.
  func registryChangeDelivered(_ delivery: Delivery) {
    counters.received += 1
    if delivery.redelivered { counters.redelivered += 1 }
    let entry = table.insert(from: .sendNormal)
    entry.isChange = true
    entry.delivery = delivery
    entry.messageID = delivery.properties.messageID ?? UUIDText.random(using: &time.random)
    let named = delivery.properties.appID.flatMap { $0.isEmpty ? nil : $0 }
    let defaultApp = named ?? (apps.count == 1 ? apps[0].id : nil)
    switch RegistryChange.parse(delivery.body, size: delivery.bodySize, defaultApp: defaultApp, limits: registryLimits) {
    case .failure(let refusal): changeAnswered(entry, refusal.answer)
    case .success(let change):
      entry.change = delivery.redelivered ? .repeated(change) : change
      entry.changeSequence = changesSeen
      changesSeen += 1
      owe(entry)
      applyOwedChanges()
    }
  }

  /// To be called about once a second as well, for what the registry couldn't take when it came. A change is held until the registry
  /// has it, and those behind it with it: after a failure none is asked for before all that are under way have been answered.
  func applyOwedChanges() {
    if areChangesHeld {
      guard changesAsked == 0 else { return }
      areChangesHeld = false
    }
    while let next = owed.first {
      owed.removeFirst()
      with(next.entry, next.generation) { entry in
        guard let change = entry.change else { return }
        changesAsked += 1
        ask(.change(entry: entry.index, generation: entry.generation), .apply([change]))
      }
      // Refused at once: it stands in front again.
      if owed.first?.sequence == next.sequence { return }
    }
  }

  /// The connection that brought them is gone. What the registry hasn't been asked for is forgotten, and so is what it has been asked for
  /// and hasn't begun: whoever gets it next applies it in its place, and later ones after it.
  func registryChangesLost() {
    owed = []
    desk?.withdrawChanges()
    changesStuckSince = nil
    for entry in table.entries where entry.isHeld && entry.isChange && !entry.ledger.isOrphan {
      entry.ledger.channelLost()
      if entry.ledger.owed == 0 { release(entry) }
    }
  }

  /// To be called about once a second.
  func giveBackStuckChanges() {
    guard let since = changesStuckSince, changesAsked == 0, let oldest = owed.first else { return }
    var returns: Int64 = 0
    if case .integer(let count)? = table[oldest.entry].delivery.properties.headers["x-delivery-count"] { returns = count }
    guard ChangePatience.givesBack(stuckSince: since, returns: returns, at: time.now) else { return }
    registryChangesLost()
    changeFeed?.giveBack()
  }

  /// Behind what came before it and before what came after it.
  func owe(_ entry: InFlight) {
    let place = owed.firstIndex { $0.sequence > entry.changeSequence } ?? owed.endIndex
    owed.insert(OwedChange(entry: entry.index, generation: entry.generation, sequence: entry.changeSequence), at: place)
  }

  func changesAnswered(_ index: Int, _ generation: Int, _ answer: RegistryAnswer) {
    changesAsked -= 1
    changesStuckSince = nil
    if case .changes(let answers) = answer, let first = answers.first {
      with(index, generation) { entry in if !entry.ledger.isConcluded { changeAnswered(entry, first) } }
    }
    if areChangesHeld { applyOwedChanges() }
  }

  func changeFailed(_ index: Int, _ generation: Int, _ error: StoreError) {
    changesAsked -= 1
    if changesAsked > 0 { areChangesHeld = true }
    with(index, generation) { entry in
      if case .refused = error {
        changeAnswered(entry, .refused(.invalidParameters, reason: "\(error)"))
      } else {
        if changesStuckSince == nil { changesStuckSince = time.now }
        owe(entry)
      }
    }
  }

  func changeAnswered(_ entry: InFlight, _ answer: ChangeAnswer) {
    conclude(entry) { publishAnswer(answer, to: entry) }
  }

  private func publishAnswer(_ answer: ChangeAnswer, to entry: InFlight) {
    if let reply = publications.reply(answer.json, for: entry) {
      publish(reply)
    } else if let failure = answer.failure {
      let code = PushError(rawValue: failure.error.rawValue)
      let words = code == nil ? "\(failure.error.rawValue): \(failure.reason)" : failure.reason
      let letter = DeadLetter(error: code ?? .invalidParameters, reason: words, attempts: 0, failedAt: time.wallClock)
      publishDeadLetter(letter, of: entry)
    }
  }
}
