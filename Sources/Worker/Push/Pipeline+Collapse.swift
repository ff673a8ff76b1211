import PushCore

/// Of requests with a collapse key that wait, only the newest for each device and key goes out: see ``Collapses``.
extension Pipeline: CollapsesHandler {
  func noted(_ requests: [RequestReference]) {
    for request in requests { if let entry = table[request] { consequenceEnded(of: entry) } }
  }

  func answered(_ questions: [Collapses.Question]) {
    for question in questions.reversed() {
      guard let entry = table[question.request], !entry.ledger.isOrphan else { continue }
      entry.collapse.knownAt = time.now
      dispatcher.giveBack(question.next, to: question.pool, entry)
    }
    time.ensureHooksRun()
  }

  func collapse(_ entry: InFlight, _ index: Int) {
    observers.note(.collapsed, entry, index)
    publisher.publishOptionalLetter(.collapsed, naming: index, for: entry)
    settle(entry, index, .failed(.collapsed))
  }
}
