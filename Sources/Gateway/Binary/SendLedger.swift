/// The notifications of one connection in order, and which of them are confirmed. They are numbered by position, because
/// identifiers may repeat. From this follows the error response at the end of the connection.
struct SendLedger {
  private enum State { case open, taken, lost }

  private struct Entry {
    /// Nil for command 0.
    var identifier: UInt32?
    var state = State.open
  }

  /// Entries from the first one that isn't confirmed.
  private var entries: [Entry] = []
  /// Position of the first entry: all earlier notifications are confirmed.
  private(set) var base = 0
  /// Number of entries that are neither confirmed nor lost.
  private(set) var open = 0
  private(set) var lost = 0
  /// Identifier of the last notification before `base`; nil if there is none.
  private var lastIdentifier: UInt32?

  /// True if all notifications are confirmed.
  var isClear: Bool { entries.isEmpty }

  /// - Returns: the position of the notification.
  mutating func add(_ frame: BinaryFrame) -> Int {
    entries.append(Entry(identifier: frame.identifier))
    open += 1
    return base + entries.count - 1
  }

  /// The broker has confirmed the notification (`isTaken`), or it was given up.
  mutating func settle(_ position: Int, isTaken: Bool) {
    let index = position - base
    guard entries.indices.contains(index), entries[index].state == .open else { return }
    entries[index].state = isTaken ? .taken : .lost
    open -= 1
    if !isTaken { lost += 1 }
    let taken = entries.prefix { $0.state == .taken }.count
    guard taken > 0 else { return }
    lastIdentifier = entries[taken - 1].identifier
    entries.removeFirst(taken)
    base += taken
  }

  /// The error response to send when all notifications are settled and none was refused: the sender repeats everything after
  /// the identifier. Nil, which closes without a response, if no identifier can express that.
  ///
  /// If the very first notification was lost, the response names it as failed. The sender then repeats the following ones: some
  /// may be sent twice, but none is lost.
  var farewell: ErrorResponse? {
    if base > 0 { return lastIdentifier.map { ErrorResponse(status: .shutdown, identifier: $0) } }
    guard let identifier = entries.first?.identifier else { return nil }
    return ErrorResponse(status: .processingError, identifier: identifier)
  }
}
