import AMQP
import Broker
import Logging
import PushCore
import Wire

/// The broker's side of the hold queues, as a shard's pipeline sees it.
package protocol HoldBroker: AnyObject {
  /// There is a connection to ask on.
  var canAsk: Bool { get }
  /// Declares the hold queue of an application, and says whether it is there now.
  func declareHold(_ app: String, _ completion: @escaping (Bool) -> Void)
  /// Says whether there is a hold queue of the application; nil where the broker couldn't be asked.
  func findHold(_ app: String, _ completion: @escaping (Bool?) -> Void)
  /// Ready messages; nil where there is no such queue, or the broker can't be asked.
  func countHeld(_ app: String, _ completion: @escaping (Int?) -> Void)
  func consumeHold(_ app: String, index: Int)
  func flow(_ app: Int) -> HoldFeed.Flow
  func setFlow(_ flow: HoldFeed.Flow, _ app: Int, isForProbe: Bool)
  func acknowledgeHeld(_ token: DeliveryToken, _ app: Int)
  /// Of the hold queue, in hand.
  func heldInHand(_ app: Int) -> Int
  /// Of all.
  var heldInHand: Int { get }
}

/// Which applications have a hold queue, and what is in it.
///
/// A hold queue is declared by whoever needs it first. Workers that are started, or that had nothing to do with it, find it by asking for
/// each application's, a few at a time; of those that are there, one at a time is asked how much is in it.
package final class Holds {
  private enum State {
    /// Not known to be there.
    case unknown
    /// Being declared.
    case declaring
    /// There, and consumed.
    case present
  }

  package weak var broker: (any HoldBroker)?
  /// What is held of an application is as good as nothing.
  var onEmptied: ((Int) -> Void)?
  private let apps: Applications
  private let time: Turn
  private let log: Log
  /// Of those that are not unknown.
  private var states: [Int: State] = [:]
  /// Applications whose hold queue is there.
  package private(set) var present: [Int] = []
  /// Requests ready in each of these, as last counted.
  private(set) var ready: [Int: Int] = [:]
  private var failedAt: MonotonicTime?
  /// Those before it have been asked for in this round.
  private var nextToFind = 0
  /// To be asked for again.
  private var unanswered: [Int] = []
  /// Being asked for.
  private var finding = 0
  private var roundBegan: MonotonicTime
  /// Grows when everything is to be asked for anew.
  private var epoch = 0
  /// Which of those that are there is counted next, and when.
  private var nextToCount = 0
  private var countDue = MonotonicTime(nanoseconds: 0)
  private var isCounting = false

  /// Requests of an application in its hold queue below which its lanes' requests no longer take the way through it.
  private static let few = 64
  /// Seconds between two counts of one.
  private static let pause = 0.5
  /// Seconds after which all that aren't there are asked for again, and how many are at a time.
  private static let longPause = 600.0
  private static let mostFinding = 64

  init(apps: Applications, time: Turn, log: Log) {
    self.apps = apps
    self.time = time
    self.log = log
    roundBegan = time.now
  }

  private func name(_ app: Int) -> String { String(decoding: apps[app].id, as: UTF8.self) }

  /// Whether requests can be put there now; if not, that is seen to.
  func isPresent(_ app: Int) -> Bool {
    switch states[app] ?? .unknown {
    case .present: return true
    case .declaring: return false
    case .unknown:
      if let failedAt, time.now.seconds(since: failedAt) < 1 { return false }
      declare(app)
      return false
    }
  }

  private func declare(_ app: Int) {
    guard let broker else { return }
    states[app] = .declaring
    broker.declareHold(name(app)) { [weak self] isThere in
      guard let self else { return }
      guard isThere else {
        states[app] = nil
        failedAt = time.now
        return
      }
      found(app)
    }
  }

  private func found(_ app: Int) {
    guard states[app] != .present else { return }
    states[app] = .present
    present.append(app)
    log.info("an application's requests can be held", ["app": apps[app].id])
    broker?.consumeHold(name(app), index: app)
  }

  /// A queue that was there is gone, or their connection is: which are there is asked for anew.
  package func lost() {
    states = [:]
    present = []
    ready = [:]
    epoch += 1
    finding = 0
    unanswered = []
    nextToFind = 0
    nextToCount = 0
    roundBegan = time.now
  }

  package var report: [HoldReport] {
    present.map { .init(app: apps[$0].id, ready: ready[$0], inHand: broker?.heldInHand($0) ?? 0) }
  }

  /// Each application's has been asked for since the start, or since they were lost.
  package var areKnown: Bool { nextToFind == apps.indices.upperBound && finding == 0 && unanswered.isEmpty }

  /// To be called several times a second.
  func look() {
    guard let broker, broker.canAsk else { return }
    find(broker)
    count(broker)
  }

  // MARK: which are there

  private func find(_ broker: any HoldBroker) {
    if areKnown, time.now.seconds(since: roundBegan) >= Self.longPause {
      nextToFind = 0
      roundBegan = time.now
    }
    while finding < Self.mostFinding, broker.canAsk, let app = nextUnknown() {
      finding += 1
      broker.findHold(name(app)) { [weak self, epoch] isThere in
        guard let self, epoch == self.epoch else { return }
        finding -= 1
        // Declared once more: whoever made it may have died before it was bound.
        if isThere == true, states[app] == nil { declare(app) }
        if isThere == nil { unanswered.append(app) } else { time.schedule(after: 0) { [weak self] in self?.look() } }
      }
    }
  }

  private func nextUnknown() -> Int? {
    while nextToFind < apps.indices.upperBound {
      defer { nextToFind += 1 }
      if states[nextToFind] == nil { return nextToFind }
    }
    return unanswered.popLast()
  }

  // MARK: what is in them

  private func count(_ broker: any HoldBroker) {
    guard !isCounting, !present.isEmpty, countDue <= time.now else { return }
    if nextToCount >= present.count { nextToCount = 0 }
    let app = present[nextToCount]
    nextToCount += 1
    isCounting = true
    broker.countHeld(name(app)) { [weak self] count in
      guard let self else { return }
      isCounting = false
      ready[app] = count
      if let count, count < Self.few { onEmptied?(app) }
      // All of them within the pause.
      countDue = time.now.advanced(bySeconds: Self.pause / Double(max(present.count, 1)))
      time.schedule(at: countDue) { [weak self] in self?.look() }
    }
  }
}
