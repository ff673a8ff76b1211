/// What could be read of a document that may have faults.
struct JSON5Reading {
  /// nil where it was given up; what is wrong in it reads as null.
  var value: ConfigurationValue?
  var places = JSON5Places()
  /// By their places.
  private(set) var faults: [JSON5Reader.Fault] = []
  /// The names of what reads as null because it is wrong.
  var broken: Set<String> = []
  /// Each value stands where it was meant to: nobody had to guess what a fault has done to what follows.
  private(set) var isCertain = true
  /// The last fault is a text that doesn't end on its line, and the reader stands there.
  var hasOpenText = false
  /// No comma is to be looked for behind the last value.
  var isSeparated = false
  /// Nothing more is read.
  var isStopped = false

  /// How a fault bears upon what follows.
  enum Bearing {
    /// Not at all.
    case certain
    /// What follows is read as is likely. Further faults of the kind on its line are taken for its consequences.
    case guessed
  }

  /// Faults after which something else must be wrong.
  private static let most = 100

  /// - Returns: whether reading goes on.
  mutating func note(_ fault: JSON5Reader.Fault, _ bearing: Bearing) -> Bool {
    let isConsequence = bearing == .guessed && faults.contains { $0.line == fault.line }
    if bearing == .guessed { isCertain = false }
    if !isConsequence { faults.append(fault) }
    isStopped = faults.count >= Self.most
    return !isStopped
  }

  /// It ended with a fault, which is among them or new.
  mutating func end(with fault: JSON5Reader.Fault) {
    isCertain = false
    if !faults.contains(where: { $0.line == fault.line }) { faults.append(fault) }
  }
}
