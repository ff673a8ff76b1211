/// Counters of the doors of APNs' binary interface.
final class BinaryFigures {
  /// Open connections of senders.
  var open = 0
  /// Notifications that the broker confirmed, and notifications given up.
  var taken = 0
  var lost = 0
  var responses: [BinaryStatus: Int] = [:]
  /// Entries of feedback lists that were read to the end.
  var feedback = 0
}
