import AMQP
import PushCore
import Storage

/// Changes of the registry that come by the registry queue, in their order.
extension Pipeline {
  /// A change that the registry doesn't have yet.
  struct OwedChange {
    var entry: Int
    var generation: Int
    /// Ascends in the order of arrival.
    var sequence: Int
  }

  /// Applied, answered to whoever asked, a dead letter when any of it is refused and nobody did.
  func acceptChange(_ delivery: Delivery) {
    counters.received += 1
    if delivery.redelivered { counters.redelivered += 1 }
    let entry = table.insert(from: .sendNormal)
    entry.delivery = delivery
    entry.messageID = delivery.properties.messageID ?? UUIDText.random()
    hold(delivery.body.count)
    let named = delivery.properties.appID.flatMap { $0.isEmpty ? nil : $0 }
    let defaultApp = named ?? (apps.count == 1 ? apps[0].id : nil)
    switch RegistryChange.parse(delivery.body, defaultApp: defaultApp, limits: registryLimits) {
    case .failure(let refusal): changeAnswered(entry, refusal.answer)
    case .success(let change):
      entry.change = change
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

  /// Behind what came before it and before what came after it.
  func owe(_ entry: InFlight) {
    let place = owed.firstIndex { $0.sequence > entry.changeSequence } ?? owed.endIndex
    owed.insert(OwedChange(entry: entry.index, generation: entry.generation, sequence: entry.changeSequence), at: place)
  }

  func changesAnswered(_ index: Int, _ generation: Int, _ answer: RegistryAnswer) {
    changesAsked -= 1
    if case .changes(let answers) = answer, let first = answers.first {
      with(index, generation) { entry in if !entry.isFinishing { changeAnswered(entry, first) } }
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
        owe(entry)
      }
    }
  }

  func changeAnswered(_ entry: InFlight, _ answer: ChangeAnswer) {
    entry.isFinishing = true
    if let reply = publications.reply(answer.json, for: entry) {
      publish(reply)
    } else if let failure = answer.failure {
      let code = PushError(rawValue: failure.error.rawValue)
      let words = code == nil ? "\(failure.error.rawValue): \(failure.reason)" : failure.reason
      let letter = DeadLetter(error: code ?? .invalidParameters, reason: words, attempts: 0, failedAt: loop.wallClock)
      publishDeadLetter(letter, body: entry.delivery.body, of: entry)
    }
    if entry.publications == 0 { acknowledge(entry) }
  }
}
