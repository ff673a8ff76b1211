/// Decides when a request is acknowledged. A request has open recipients until each has ended or is put off. Then the request
/// is concluded: its consequences are decided, once. Each is owed until the broker has confirmed it or the registry has
/// answered. A concluded request that owes nothing is acknowledged. If the channel is lost, the request is an orphan: it
/// continues, and is acknowledged under its new delivery tag when the broker redelivers it here.
package struct Ledger: Equatable {
  /// The next action after a change, for ``Pipeline/perform(_:_:)``.
  enum Step: Equatable {
    case nothing
    /// No recipient is open: decide the consequences and hand them over.
    case conclude
    /// All consequences of a page's devices are confirmed: report the page.
    case report
    /// All consequences so far are confirmed: publish the copy for the ladder or the hold queue.
    case putOff
    case acknowledge
    /// The request can't be acknowledged: drop it if a redelivery couldn't be recognised.
    case forget
    /// The request was redelivered here: send the rest.
    case resume
  }

  /// The number of recipients that have neither ended nor been put off, plus loops over recipients.
  private(set) var open = 0
  package private(set) var onStreams = 0
  /// The number of unconfirmed publications and unanswered registry calls.
  private(set) var owed = 0
  private(set) var isConcluded = false
  /// A page's report, or a copy for the ladder or the hold queue, which waits for what else is owed.
  private(set) var due: Step?
  private(set) var isOrphan = false

  /// No answer and no confirm is outstanding.
  var isSettled: Bool { onStreams == 0 && owed == 0 }

  // MARK: recipients

  /// The recipients are opened again in a new round.
  mutating func startRound() { open = 0 }

  /// A recipient must be sent to, or a loop over the recipients begins.
  mutating func opened() { open += 1 }

  /// A recipient has ended or is put off, or the loop has ended.
  mutating func closed() -> Step {
    open -= 1
    return stepOfRecipients
  }

  var stepOfRecipients: Step {
    if isOrphan { return .forget }
    return open == 0 && !isConcluded ? .conclude : .nothing
  }

  mutating func pushed() { onStreams += 1 }
  mutating func pushReturned() { onStreams -= 1 }

  // MARK: consequences

  /// Begins the consequences; ``concluded()`` follows when they are handed over.
  mutating func conclude() { isConcluded = true }

  /// The consequences, if any, have been handed over.
  func concluded() -> Step { owed == 0 ? .acknowledge : .nothing }

  /// One more confirm or answer is outstanding.
  mutating func owes() { owed += 1 }

  /// A confirm or answer has arrived.
  mutating func met() -> Step {
    owed -= 1
    guard owed == 0 else { return .nothing }
    if let step = due {
      due = nil
      return step
    }
    if isConcluded { return .acknowledge }
    return isOrphan ? .forget : .nothing
  }

  /// Reports a page, or publishes a copy, as soon as nothing else is owed. If the worker dies before a report, the page's
  /// devices are counted again. An earlier copy would count consequences as published that are not confirmed.
  mutating func owes(_ step: Step) -> Step {
    guard owed > 0 else { return step }
    due = step
    return .nothing
  }

  // MARK: the channel

  /// A copy that is still due is dropped, because the broker redelivers the original.
  mutating func channelLost() {
    isOrphan = true
    if due == .putOff {
      due = nil
      isConcluded = false
    }
  }

  /// The request was redelivered here under a new delivery tag.
  mutating func redelivered() -> Step {
    isOrphan = false
    guard isConcluded else { return .resume }
    return owed == 0 ? .acknowledge : .nothing
  }

  /// The copy was withdrawn before it left, so the request is no longer concluded.
  mutating func withdrawn() {
    owed -= 1
    isConcluded = false
  }
}
