import Wire

/// When nothing befalls a fleet and it is to work as if nothing ever had.
struct Calm {
  private struct Trouble {
    /// Seconds since the beginning.
    var from: Double
    /// The same; infinite where it isn't known when it is over.
    var to: Double
    /// Seconds after its end until everything goes on.
    var recovery: Double
    /// What was accepted before its end has only waited: it goes out as soon as all goes on.
    var onlyDelays: Bool
  }

  private var troubles = [Trouble(from: 0, to: Self.start, recovery: 0, onlyDelays: true)]

  /// Seconds until a fleet's workers have made their connections.
  private static let start = 3.0
  /// Seconds after the broker's return, or the end of what it did to its connections, until a worker takes and sends again.
  static let afterBroker = 5.0
  /// Seconds after a provider's last GOAWAY until what was accepted right after it is sent. Each of many takes a connection, and a pool makes only
  /// so many within ten seconds.
  static let afterGoAway = 2.0
  static let afterManyGoAways = dialWindow + latency
  static let dialWindow = 10.0
  /// Seconds until a queue that confirms nothing is known for it, which begins with its first publication: until then what waits takes room.
  static let untilStuck = 10.0
  /// Seconds that a push takes from the producer's confirm to the provider.
  static let latency = 2.0

  /// - Parameter isKnown: workers have room for whatever comes at once.
  init(isKnown: Bool = true) {
    if !isKnown { troubles.append(Self.unknown(from: 0)) }
  }

  private static func unknown(from start: Double) -> Trouble {
    Trouble(from: start, to: .infinity, recovery: 0, onlyDelays: false)
  }

  /// Until when results aren't confirmed.
  private var unconfirmedUntil = 0.0

  mutating func note(_ kind: Affliction, from start: Double, for seconds: Double) {
    if kind == .outcomesUnconfirmed {
      // A queue that has confirmed again is found out about anew.
      let again = min(unconfirmedUntil, start + seconds)
      if start < unconfirmedUntil {
        troubles.append(Trouble(from: again, to: again + Self.untilStuck, recovery: 0, onlyDelays: false))
      }
      unconfirmedUntil = max(unconfirmedUntil, start + seconds)
    }
    var trouble = Self.known(kind, from: start, for: seconds) ?? Self.unknown(from: start)
    // What has only waited for results is delivered again, and takes room again until it is known that it waits for these.
    if trouble.recovery == Self.afterBroker, start < unconfirmedUntil { trouble.recovery += Self.untilStuck }
    troubles.append(trouble)
  }

  /// A provider's GOAWAYs are over that began at a time, and were few.
  mutating func fewGoAways(since start: Double) {
    for place in troubles.indices where troubles[place].from == start && troubles[place].recovery == Self.afterManyGoAways {
      troubles[place].recovery = Self.afterGoAway
    }
  }

  /// Whether it is known when a fleet has to have recovered from it.
  static func knowsEnd(of kind: Affliction) -> Bool { known(kind, from: 0, for: 0) != nil }

  private static func known(_ kind: Affliction, from start: Double, for seconds: Double) -> Trouble? {
    let end = start + seconds
    return switch kind {
    case .brokerCrash, .brokerFrozen, .brokerAlarm, .connectionsClosed, .channelsClosed, .consumersClosed, .leaderChanged:
      Trouble(from: start, to: end, recovery: afterBroker, onlyDelays: true)
    case .confirmsLate: Trouble(from: start, to: end, recovery: afterBroker, onlyDelays: false)
    // Results wait; pushes go on, as soon as it is known that they do.
    case .outcomesUnconfirmed: Trouble(from: start, to: start + untilStuck, recovery: 0, onlyDelays: false)
    // What was refused in it waits on the ladder.
    case .goAway: Trouble(from: start, to: end, recovery: afterManyGoAways, onlyDelays: false)
    default: nil
    }
  }

  /// Whether nothing befalls the fleet from a time on for so many seconds, nor is felt any more of what did.
  func holds(at time: Double, for seconds: Double) -> Bool {
    troubles.allSatisfy { $0.to + $0.recovery <= time || $0.from > time + seconds }
  }

  /// When what is accepted at a time has to be sent at the latest; nil where that isn't known.
  func latest(for accepted: Double) -> Double? {
    var latest = accepted + Self.latency
    var rest = troubles
    while let place = rest.firstIndex(where: { $0.to + $0.recovery > accepted && $0.from <= latest }) {
      let trouble = rest.remove(at: place)
      guard trouble.onlyDelays || trouble.to <= accepted else { return nil }
      latest = max(latest, trouble.to + trouble.recovery)
    }
    return latest
  }
}
