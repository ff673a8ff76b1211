/// The result of reading a document that may have faults.
struct JSON5Reading {
  /// nil if reading was abandoned; invalid parts are null.
  var value: ConfigurationValue?
  /// The positions of the settings.
  var places: [String: Place] = [:]
  /// In the order of their positions.
  private(set) var faults: [JSON5Reader.Fault] = []
  /// Names of settings that are null because they are invalid.
  var broken: Set<String> = []
  /// True while no fault has required a guess, so that all values are at their intended places.
  private(set) var isCertain = true
  /// True if the last fault is a text that doesn't end on its line. The reader is then at the line's end.
  var hasOpenText = false
  /// True if no comma is expected after the last value.
  var isSeparated = false
  var isStopped = false

  struct Place {
    /// From 1; the column counts characters.
    var line = 1
    var column = 1
  }

  /// The effect of a fault on the rest of the document.
  enum Bearing {
    case certain
    /// The rest is read by a guess. Further such faults on the same line count as consequences.
    case guessed
  }

  /// The number of faults after which reading ends.
  private static let most = 100

  /// - Returns: true if reading continues.
  mutating func note(_ fault: JSON5Reader.Fault, _ bearing: Bearing) -> Bool {
    let isConsequence = bearing == .guessed && faults.contains { $0.line == fault.line }
    if bearing == .guessed { isCertain = false }
    if !isConsequence { faults.append(fault) }
    isStopped = faults.count >= Self.most
    return !isStopped
  }

  /// The position of the setting, or of the innermost object that would contain it.
  func place(ofNearest name: String) -> Place? {
    if let place = places[name] ?? places[name + "File"] { return place }
    let holder = places.keys.filter { name.hasPrefix($0 + ".") || name.hasPrefix($0 + "[") }.max { $0.count < $1.count }
    return holder.flatMap { places[$0] }
  }

  /// Records the fault that ended the reading, unless its line already has one.
  mutating func end(with fault: JSON5Reader.Fault) {
    isCertain = false
    if !faults.contains(where: { $0.line == fault.line }) { faults.append(fault) }
  }
}
