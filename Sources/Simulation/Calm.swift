import Wire

/// When nothing befalls a fleet and it is to work as if nothing ever had.
struct Calm {
  private struct Trouble {
    var from: Double
    var to: Double
  }

  private var troubles: [Trouble] = [Trouble(from: 0, to: Self.start)]
  /// It isn't known when some trouble is over.
  private(set) var isUnknown = false

  /// Seconds until a fleet's workers have made their connections.
  private static let start = 3.0
  /// Seconds after the broker's return, or the end of what it did to its connections, until a worker takes and sends again.
  static let afterBroker = 5.0
  /// The same after a provider's GOAWAY.
  static let afterGoAway = 2.0
  /// Seconds until a queue that confirms nothing is known for it, which begins with its first publication: until then what waits takes room.
  static let untilStuck = 10.0
  /// Seconds that a push takes from the producer's confirm to the provider.
  static let latency = 2.0

  mutating func note(_ kind: Affliction, from start: Double, for seconds: Double) {
    switch kind {
    case .brokerCrash, .brokerFrozen, .brokerAlarm, .connectionsClosed, .channelsClosed, .consumersClosed, .leaderChanged,
      .confirmsLate:
      troubles.append(Trouble(from: start, to: start + seconds + Self.afterBroker))
    // Results wait; pushes go on, as soon as it is known that they do.
    case .outcomesUnconfirmed: troubles.append(Trouble(from: start, to: start + Self.untilStuck))
    case .goAway: troubles.append(Trouble(from: start, to: start + seconds + Self.afterGoAway))
    default: isUnknown = true
    }
  }

  /// Whether what is accepted at a time has to be sent within so many seconds.
  func holds(at time: Double, for seconds: Double = Self.latency) -> Bool {
    !isUnknown && troubles.allSatisfy { $0.to <= time || $0.from > time + seconds }
  }
}
