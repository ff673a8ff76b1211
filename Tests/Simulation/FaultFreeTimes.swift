import Wire

/// The times without faults, in which the fleet must work as if there had never been one.
struct FaultFreeTimes {
  private struct Fault {
    /// Seconds since the beginning.
    var from: Double
    /// The end; infinite if it is unknown.
    var to: Double
    /// Seconds after the end until the fleet works normally.
    var recovery: Double
    /// True if requests accepted before the end are only delayed, and are sent after recovery.
    var onlyDelays: Bool
  }

  private var faults = [Fault(from: 0, to: Self.start, recovery: 0, onlyDelays: true)]

  /// Seconds until a new fleet's workers are connected.
  private static let start = 3.0
  /// Seconds after the end of a broker fault until workers consume and send again.
  static let afterBroker = 5.0
  /// Seconds after a provider's last GOAWAY until newly accepted requests are sent. Each of many GOAWAYs costs a connection,
  /// and a pool makes only a limited number in ten seconds.
  static let afterGoAway = 2.0
  static let afterManyGoAways = dialWindow + latency
  static let dialWindow = 10.0
  /// Seconds after the first publication until a queue without confirms counts as stuck. Until then waiting results take room.
  static let untilStuck = 10.0
  /// Seconds from the producer's confirm to the provider.
  static let latency = 2.0

  /// - Parameter isKnown: true if workers have room for all requests.
  init(isKnown: Bool = true) {
    if !isKnown { faults.append(Self.unknown(from: 0)) }
  }

  private static func unknown(from start: Double) -> Fault {
    Fault(from: start, to: .infinity, recovery: 0, onlyDelays: false)
  }

  /// Results are not confirmed until then.
  private var unconfirmedUntil = 0.0

  mutating func note(_ kind: FaultKind, from start: Double, for seconds: Double) {
    if kind == .outcomesUnconfirmed {
      // A queue that has confirmed again must be recognised as stuck again.
      let again = min(unconfirmedUntil, start + seconds)
      if start < unconfirmedUntil {
        faults.append(Fault(from: again, to: again + Self.untilStuck, recovery: 0, onlyDelays: false))
      }
      unconfirmedUntil = max(unconfirmedUntil, start + seconds)
    }
    var fault = Self.known(kind, from: start, for: seconds) ?? Self.unknown(from: start)
    // Requests that wait for results are redelivered, and take room until the queue counts as stuck again.
    if fault.recovery == Self.afterBroker, start < unconfirmedUntil { fault.recovery += Self.untilStuck }
    faults.append(fault)
  }

  /// The GOAWAYs that began at this time are over, and were few.
  mutating func fewGoAways(since start: Double) {
    for place in faults.indices where faults[place].from == start && faults[place].recovery == Self.afterManyGoAways {
      faults[place].recovery = Self.afterGoAway
    }
  }

  /// True if the time of recovery from this kind of fault is known.
  static func knowsEnd(of kind: FaultKind) -> Bool { known(kind, from: 0, for: 0) != nil }

  private static func known(_ kind: FaultKind, from start: Double, for seconds: Double) -> Fault? {
    let end = start + seconds
    return switch kind {
    case .brokerCrash, .brokerFrozen, .brokerAlarm, .connectionsClosed, .channelsClosed, .consumersClosed, .leaderChanged:
      Fault(from: start, to: end, recovery: afterBroker, onlyDelays: true)
    case .confirmsLate: Fault(from: start, to: end, recovery: afterBroker, onlyDelays: false)
    // Results wait. Pushes go on once the queue counts as stuck.
    case .outcomesUnconfirmed: Fault(from: start, to: start + untilStuck, recovery: 0, onlyDelays: false)
    // Refused requests wait for a retry.
    case .goAway: Fault(from: start, to: end, recovery: afterManyGoAways, onlyDelays: false)
    default: nil
    }
  }

  /// True if there is no fault and no recovery from one in this period.
  func holds(at time: Double, for seconds: Double) -> Bool {
    faults.allSatisfy { $0.to + $0.recovery <= time || $0.from > time + seconds }
  }

  /// The latest send time of a request accepted at a time; nil if it is unknown.
  func latest(for accepted: Double) -> Double? {
    var latest = accepted + Self.latency
    var rest = faults
    while let place = rest.firstIndex(where: { $0.to + $0.recovery > accepted && $0.from <= latest }) {
      let fault = rest.remove(at: place)
      guard fault.onlyDelays || fault.to <= accepted else { return nil }
      latest = max(latest, fault.to + fault.recovery)
    }
    return latest
  }
}
