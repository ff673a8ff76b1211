import PushCore

/// Of requests with a collapse key that wait, only the newest for each device and key goes out: see ``Collapses``.
extension Pipeline: CollapsesHandler {
  func noted(_ requests: [RequestReference]) {
    for request in requests { if let entry = table[request] { consequenceEnded(of: entry) } }
  }

  /// What is in the pool's lanes waits from here on.
  func troubleBegan(_ pool: Int) {
    for entry in table.entries where entry.isInUse && entry.isReplaceable && !entry.ledger.isConcluded {
      let waits = entry.recipients.contains { if case .waiting = $0.state { $0.pool == pool } else { false } }
      if waits { collapses.noteWaitingHere(entry) }
    }
  }

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

  func collapse(_ entry: InFlight, _ index: Int) {
    observers.note(.collapsed, entry, index)
    publishOptionalLetter(.collapsed, naming: index, of: entry)
    settle(entry, index, .failed(.collapsed))
  }
}
