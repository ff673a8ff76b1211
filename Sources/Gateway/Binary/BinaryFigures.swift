/// What the doors of APNs' binary interface count.
final class BinaryFigures {
  /// Connections of senders.
  var open = 0
  /// Notifications that the broker has confirmed, and those that were given up.
  var taken = 0
  var lost = 0
  var responses: [BinaryStatus: Int] = [:]
  /// Entries of lists that were read to the end.
  var feedback = 0
}
