/// What a request still waits for before its acknowledgement: the one place that decides it.
///
/// A request has open recipients until each has ended or is put off to another round. Then what follows from it is decided, once: it is
/// concluded. What follows is owed until the broker has confirmed it, or the registry has answered. A concluded request that owes nothing
/// is acknowledged; nothing else is. A request whose channel is lost is an orphan: it goes on, and is acknowledged under its new delivery
/// when the broker delivers it here again.
package struct Ledger: Equatable {
  /// What is to be done after a change; ``Pipeline/perform(_:_:)`` does it.
  enum Step: Equatable {
    case nothing
    /// No recipient is open: what follows is to be decided and handed over.
    case conclude
    /// What a page's devices have led to is safe: the registry may hear how it ended.
    case report
    /// What has ended so far is safe: the copy for the ladder or the hold queue may leave, which says so.
    case putOff
    case acknowledge
    /// Nobody will acknowledge it: it may be let go of where it could not be recognised anyway.
    case forget
    /// Delivered here again: what is left of it is to be sent.
    case resume
  }

  /// Recipients that have neither ended nor been put off, and loops over recipients that are under way.
  private(set) var open = 0
  /// Pushes handed to a pool and not answered.
  package private(set) var onStreams = 0
  /// Publications not confirmed, and questions that the registry has to answer.
  private(set) var owed = 0
  /// What follows is decided.
  private(set) var isConcluded = false
  /// A page's report waits for what else is owed.
  private(set) var isReportDue = false
  /// A copy for the ladder or the hold queue waits for what else is owed.
  private(set) var isCopyDue = false
  /// The channel that delivered it is gone.
  private(set) var isOrphan = false

  /// No answer and no confirm will come for it.
  var isSettled: Bool { onStreams == 0 && owed == 0 }

  // MARK: recipients

  /// Its recipients are gone through anew: each that is left is opened again.
  mutating func startRound() { open = 0 }

  /// A recipient is left to be sent to; or a loop over the recipients begins, whose request must not end under it.
  mutating func opened() { open += 1 }

  /// A recipient has ended or is put off; or the loop is over.
  mutating func closed() -> Step {
    open -= 1
    return stepOfRecipients
  }

  /// What the state of the recipients calls for.
  var stepOfRecipients: Step {
    if isOrphan { return .forget }
    return open == 0 && !isConcluded ? .conclude : .nothing
  }

  mutating func pushed() { onStreams += 1 }
  mutating func pushReturned() { onStreams -= 1 }

  // MARK: what follows

  /// What follows is decided from here on; ``concluded()`` comes after it is handed over.
  mutating func conclude() { isConcluded = true }

  /// What follows has been handed over, or there was nothing.
  func concluded() -> Step { owed == 0 ? .acknowledge : .nothing }

  /// Something more is to be confirmed or answered.
  mutating func owes() { owed += 1 }

  /// It has been.
  mutating func met() -> Step {
    owed -= 1
    guard owed == 0 else { return .nothing }
    if isReportDue {
      isReportDue = false
      return .report
    }
    if isCopyDue {
      isCopyDue = false
      return .putOff
    }
    if isConcluded { return .acknowledge }
    return isOrphan ? .forget : .nothing
  }

  /// A page is to be reported as soon as nothing else is owed: should the worker die before that, its devices are accounted for anew.
  mutating func owesReport() -> Step {
    guard owed > 0 else { return .report }
    isReportDue = true
    return .nothing
  }

  /// A copy is to leave as soon as nothing else is owed: should the worker die before that, whoever gets the copy would take for said what
  /// nobody has heard.
  mutating func owesCopy() -> Step {
    guard owed > 0 else { return .putOff }
    isCopyDue = true
    return .nothing
  }

  // MARK: the channel

  /// A copy that is still due doesn't leave: the broker delivers the original again.
  mutating func channelLost() {
    isOrphan = true
    if isCopyDue {
      isCopyDue = false
      isConcluded = false
    }
  }

  /// The broker has delivered it here again, and its new delivery is to be acknowledged.
  mutating func redelivered() -> Step {
    isOrphan = false
    guard isConcluded else { return .resume }
    return owed == 0 ? .acknowledge : .nothing
  }

  /// Its copy has been taken back before it left: the decision is open again.
  mutating func withdrawn() {
    owed -= 1
    isConcluded = false
  }
}
