/// The notifications of one connection in their order, by position, since identifiers may repeat: which are published for sure, and so what
/// may be said of them when the connection closes.
struct SendLedger {
  private enum State { case open, taken, lost }

  private struct Entry {
    var identifier: UInt32?
    var isSimple: Bool
    var state = State.open
  }

  /// From the first that isn't taken on.
  private var entries: [Entry] = []
  /// Of the first entry: so many before it are taken.
  private(set) var base = 0
  /// How many are neither taken nor lost.
  private(set) var open = 0
  private(set) var lost = 0
  /// Of the last before `base`; nil where that has none, or there is none.
  private var lastIdentifier: UInt32?

  /// Every one is taken.
  var isClear: Bool { entries.isEmpty }

  /// - Returns: its position.
  mutating func add(_ frame: BinaryFrame) -> Int {
    entries.append(Entry(identifier: frame.identifier, isSimple: frame.isSimple))
    open += 1
    return base + entries.count - 1
  }

  /// The broker has confirmed it (`isTaken`), or it was given up.
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

  /// The last words where everything that was taken up is settled and nothing is wrong with what the sender wrote: it is to send again what
  /// follows the identifier. Nil, a close without a word, where no identifier can say that.
  ///
  /// Where the very first was lost there is none that was taken, so that one is named as failed; what follows it was not taken either, or
  /// is sent twice rather than not at all.
  var farewell: ErrorResponse? {
    if base > 0 { return lastIdentifier.map { ErrorResponse(status: .shutdown, identifier: $0) } }
    guard let first = entries.first, !first.isSimple, let identifier = first.identifier else { return nil }
    return ErrorResponse(status: .processingError, identifier: identifier)
  }
}
