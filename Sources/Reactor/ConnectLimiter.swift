import Synchronization
import Wire

/// Limits the connections that a process makes to one host at a time; others queue. If thousands of pools reconnected at once,
/// it would look like an attack and slow all of them. Behind a proxy, the host still counts and not the proxy: a host that does
/// not answer must not hold up the connections to others.
public final class ConnectLimiter: Sendable {
  public static let shared = ConnectLimiter(places: 16)

  /// A place, or a position in the queue; given up with the last reference.
  final class Ticket: Sendable {
    let id: Int
    fileprivate let endpoint: Endpoint
    private let limiter: ConnectLimiter

    fileprivate init(_ id: Int, _ endpoint: Endpoint, _ limiter: ConnectLimiter) {
      self.id = id
      self.endpoint = endpoint
      self.limiter = limiter
    }

    deinit { limiter.giveUp(id, endpoint) }
  }

  typealias Call = @Sendable (_ id: Int) -> Void

  private struct Line {
    var inside: Set<Int> = []
    /// Includes tickets given up in the queue, which are no longer in `calls`.
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

  /// - Parameter call: called, on any thread, when a place is free; never if `isAdmitted` is true.
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
    // Released outside of the lock: it may capture a ticket.
    _ = dropped
    next?.call(next?.id ?? 0)
  }
}
