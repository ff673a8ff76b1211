import AMQP

/// What is taken from the lanes beyond what there is room for, where several applications share the worker or outcome queues confirm nothing:
/// others' requests stand behind those that wait.
extension Pipeline {
  /// Requests on their way to hold queues at most.
  private static let mostLeavingForHold = 2_000
  /// Requests at most that wait for stuck queues beside those that there is always room for.
  private static let mostStuck = 16_000
  /// Bytes of bodies in hand below which an application's requests are begun though all others fill the room.
  private static let little = 32 << 10
  /// Lines that are asked in one turn of the loop whether they may begin, in vain.
  private static let mostRefusals = 64

  /// Requests that may be begun; those that only wait for a queue to confirm, or for their redelivery, don't count.
  private var mostBegun: Int {
    2 * prefetch + heldInHand + leavingForHold + orphans.count + min(outbox.stuck, Self.mostStuck)
  }
  private var isTableFull: Bool { table.count >= mostBegun }
  private var isHoldCrowded: Bool { leavingForHold >= Self.mostLeavingForHold }

  /// Whether a delivery of a lane has to wait: for room, or behind those of its application that do.
  func hasToWait(_ delivery: borrowing Delivery, from queue: WorkQueue) -> Bool {
    guard isTableFull || isHoldCrowded || !ahead.isEmpty else { return false }
    let line = line(of: delivery, queue)
    return ahead.contains(line) || !mayBegin(line)
  }

  private func mayBegin(_ line: DeliveriesAhead.Line) -> Bool {
    if isTableFull, table.count >= 2 * mostBegun || line.app < 0 || bodies.kept(for: line.app) >= Self.little { return false }
    return !(isHoldCrowded && isWhollyHeldBack(line.app, line.queue))
  }

  func takeAhead(_ delivery: consuming Delivery, from queue: WorkQueue) {
    bodies.add(delivery.body.count)
    let line = line(of: delivery, queue)
    ahead.append(delivery, line)
  }

  /// Of those taken ahead, as many as there is room for are begun; the high lane's first.
  func beginAhead() {
    heldInHand = holds.broker?.heldInHand ?? 0
    guard !ahead.isEmpty else { return }
    for isHigh in [true, false] {
      var refusals = 0
      while !isDraining, refusals < min(isHigh ? ahead.lineCounts.high : ahead.lineCounts.normal, Self.mostRefusals) {
        guard let next = ahead.takeTurn(high: isHigh, mayBegin) else {
          refusals += 1
          continue
        }
        refusals = 0
        bodies.remove(next.delivery.bodyCount, keptFor: nil)
        begin(next.delivery.delivery, from: next.queue)
      }
    }
  }

  /// The broker delivers them again.
  func forgetAhead() { ahead.removeAll { bodies.remove($0.bodyCount, keptFor: nil) } }

  /// Others' requests may stand behind those that wait: the lanes have brought all that they may.
  var isToReadAhead: Bool {
    if !ahead.isEmpty || outbox.stuck > prefetch / 2 { return true }
    return isShared && table.count - heldInHand >= prefetch / 10 * 9
  }

  private func line(of delivery: borrowing Delivery, _ queue: WorkQueue) -> DeliveriesAhead.Line {
    guard let id = delivery.properties.appID, !id.isEmpty else { return .init(app: apps.only ?? -1, queue: queue) }
    return .init(app: apps.index(of: id) ?? -1, queue: queue)
  }

  /// Whatever comes for the application goes to its hold queue.
  private func isWhollyHeldBack(_ app: Int, _ queue: WorkQueue) -> Bool {
    app >= 0 && isHeldBack(app, by: apps[app].pools, queue)
  }

  /// Each of the pools is closed to the application's requests, and they can be held.
  func isHeldBack(_ app: Int, by pools: [Int], _ queue: WorkQueue) -> Bool {
    !pools.isEmpty && pools.allSatisfy { self.pools[$0].bulkhead.isClosed(to: queue) } && holds.isPresent(app)
  }
}
