import Synchronization
import Wire

/// How many connections to one host a process makes at a time, on whichever loops; the others wait in line. Thousands of pools that lose
/// their connections at one moment would look like an attack, and each would be slowed by all.
public final class DialGate: Sendable {
  public static let shared = DialGate(places: 16)

  /// A place, or one in the line; given up with the last reference.
  final class Ticket: Sendable {
    let id: Int
    fileprivate let endpoint: Endpoint
    private let gate: DialGate

    fileprivate init(_ id: Int, _ endpoint: Endpoint, _ gate: DialGate) {
      self.id = id
      self.endpoint = endpoint
      self.gate = gate
    }

    deinit { gate.giveUp(id, endpoint) }
  }

  typealias Call = @Sendable (_ id: Int) -> Void

  private struct Line {
    var inside: Set<Int> = []
    /// Who gave up in the line is in `calls` no longer.
    var order = Ring<Int>()
    var calls: [Int: Call] = [:]
  }

  private struct State {
    var lines: [Endpoint: Line] = [:]
    var lastID = 0
  }

  private let state = Mutex(State())
  private let places: Int

  init(places: Int) { self.places = places }

  /// - Parameter call: called, on any thread, when a place has become free; never where `isAdmitted` is true.
  func enter(_ endpoint: Endpoint, _ call: @escaping Call) -> (ticket: Ticket, isAdmitted: Bool) {
    let (id, isAdmitted) = state.withLock { state in
      state.lastID += 1
      let id = state.lastID
      let isAdmitted = state.lines[endpoint, default: Line()].inside.count < places
      if isAdmitted {
        state.lines[endpoint, default: Line()].inside.insert(id)
      } else {
        state.lines[endpoint, default: Line()].order.append(id)
        state.lines[endpoint, default: Line()].calls[id] = call
      }
      return (id, isAdmitted)
    }
    return (Ticket(id, endpoint, self), isAdmitted)
  }

  private func giveUp(_ id: Int, _ endpoint: Endpoint) {
    let (dropped, next) = state.withLock { state -> (Call?, (id: Int, call: Call)?) in
      guard var line = state.lines.removeValue(forKey: endpoint) else { return (nil, nil) }
      let dropped = line.calls.removeValue(forKey: id)
      var next: (Int, Call)?
      if line.inside.remove(id) != nil {
        while next == nil, let first = line.order.popFirst() {
          if let call = line.calls.removeValue(forKey: first) { next = (first, call) }
        }
      }
      if let next { line.inside.insert(next.0) }
      if !line.inside.isEmpty { state.lines[endpoint] = line }
      return (dropped, next)
    }
    // Released outside of the lock: what it captures may be a ticket.
    _ = dropped
    next?.call(next?.id ?? 0)
  }
}
