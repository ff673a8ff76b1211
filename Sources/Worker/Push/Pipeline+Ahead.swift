import AMQP

/// What is taken from the lanes beyond what there is room for, while applications wait for their hold queues or for outcome queues that confirm
/// nothing: others' requests stand behind theirs.
extension Pipeline {
  /// Requests on their way to hold queues at most.
  private static let mostLeavingForHold = 2_000
  /// Of those, as many as make it worth while to read ahead.
  private static let manyLeavingForHold = 200
  /// Requests at most that wait for stuck queues beside those that there is always room for.
  private static let mostStuck = 16_000

  /// Requests that may be begun; those that only wait for a queue to confirm, or for their redelivery, don't count.
  private var mostBegun: Int {
    2 * prefetch + holds.present.count * Int(HoldFeed.most) + leavingForHold + orphans.count + min(outbox.stuck, Self.mostStuck)
  }
  private var isTableFull: Bool { table.count >= mostBegun }
  private var isHoldCrowded: Bool { leavingForHold >= Self.mostLeavingForHold }

  /// Whether a delivery of a lane has to wait: for room, or behind those of its application that do.
  func hasToWait(_ delivery: borrowing Delivery, from queue: WorkQueue) -> Bool {
    guard isTableFull || isHoldCrowded || !ahead.isEmpty else { return false }
    let app = self.app(of: delivery)
    return isTableFull || ahead.contains(app) || isHoldCrowded && isWhollyHeldBack(app, queue)
  }

  func takeAhead(_ delivery: consuming Delivery, from queue: WorkQueue) {
    bodies.add(delivery.body.count)
    let app = app(of: delivery)
    ahead.append(delivery, of: app, from: queue)
  }

  /// Of those taken ahead, as many as there is room for are begun.
  func beginAhead() {
    while !isDraining, !isTableFull, let (app, queue) = ahead.next, !(isHoldCrowded && isWhollyHeldBack(app, queue)),
      let next = ahead.popFirst()
    {
      bodies.remove(next.delivery.bodyCount, keptFor: nil)
      begin(next.delivery.delivery, from: next.queue)
    }
  }

  /// The broker delivers them again.
  func forgetAhead() {
    while let next = ahead.popFirst() { bodies.remove(next.delivery.bodyCount, keptFor: nil) }
  }

  /// Others' requests may stand behind those that wait.
  var isToReadAhead: Bool {
    !ahead.isEmpty || isShared && leavingForHold > Self.manyLeavingForHold || outbox.stuck > prefetch / 2
  }

  private func app(of delivery: borrowing Delivery) -> Int {
    guard let id = delivery.properties.appID, !id.isEmpty else { return apps.only ?? -1 }
    return apps.index(of: id) ?? -1
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
