import AMQP
import PushCore
import Wire

/// The broker's side of the hold queues, as a shard's pipeline sees it.
protocol HoldBroker: AnyObject {
  /// There is a connection to ask on.
  var canAsk: Bool { get }
  /// Declares the hold queue of an application, and says whether it is there now.
  func declareHold(_ app: String, _ completion: @escaping (Bool) -> Void)
  /// Ready messages; nil where there is no such queue, or the broker can't be asked.
  func countHeld(_ app: String, _ completion: @escaping (Int?) -> Void)
  func consumeHold(_ app: String, index: Int)
  /// More is taken than what a provider in trouble is tried with.
  func isFlowing(_ app: Int) -> Bool
  func setFlowing(_ isFlowing: Bool, _ app: Int)
  func acknowledgeHeld(_ token: DeliveryToken, _ app: Int)
  /// Of the hold queue, in hand.
  func heldInHand(_ app: Int) -> Int
}

/// Which applications have a hold queue, and what is in it. One question to the broker at a time.
///
/// A hold queue is declared by whoever needs it first. Workers that are started, or that had nothing to do with it, find it by asking for
/// each application's in turn.
final class Holds {
  private enum State {
    /// Not known to be there.
    case unknown
    /// Being declared.
    case declaring
    /// There, and consumed.
    case present
  }

  private struct Hold {
    var state = State.unknown
    /// When to ask for it again.
    var due = MonotonicTime(nanoseconds: 0)
    /// Since the start, or since all were lost.
    var wasAskedFor = false
  }

  weak var broker: (any HoldBroker)?
  /// What is held of an application is as good as nothing.
  var onEmptied: ((Int) -> Void)?
  private let apps: [String]
  private let time: Turn
  private let log: Log
  /// Of each application.
  private var holds: [Hold]
  private var isAsking = false
  private var failedAt: MonotonicTime?

  /// Requests of an application in its hold queue below which its lanes' requests no longer take the way through it.
  private static let few = 64
  /// Seconds after which an application's is asked for again: one that is there, and one that isn't known to be. A broker logs each question for
  /// a queue that isn't there.
  private static let pause = 0.5
  private static let longPause = 600.0

  init(apps: [String], time: Turn, log: Log) {
    self.apps = apps
    self.time = time
    self.log = log
    holds = Array(repeating: Hold(), count: apps.count)
  }

  /// Whether requests can be put there now; if not, that is seen to.
  func isPresent(_ app: Int) -> Bool {
    switch holds[app].state {
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
    holds[app].state = .declaring
    broker.declareHold(apps[app]) { [weak self] isThere in
      guard let self else { return }
      guard isThere else {
        holds[app].state = .unknown
        failedAt = time.now
        return
      }
      found(app)
    }
  }

  private func found(_ app: Int) {
    guard holds[app].state != .present else { return }
    holds[app].state = .present
    log.info("an application's requests can be held", ["app": apps[app]])
    broker?.consumeHold(apps[app], index: app)
  }

  /// A queue that was there is gone, or their connection is: which are there is asked for anew.
  func lost() {
    for app in holds.indices { holds[app] = Hold() }
  }

  /// Each application's has been asked for since the start, or since they were lost.
  var areKnown: Bool { holds.allSatisfy(\.wasAskedFor) }

  /// Applications whose hold queue is there.
  var present: [Int] { holds.indices.filter { holds[$0].state == .present } }

  /// To be called several times a second: asks for one application's after the other.
  func look() {
    guard let broker, !isAsking, broker.canAsk else { return }
    guard let app = holds.indices.min(by: { holds[$0].due < holds[$1].due }), holds[app].due <= time.now else { return }
    isAsking = true
    broker.countHeld(apps[app]) { [weak self] count in
      guard let self else { return }
      isAsking = false
      if let count {
        // Declared once more: whoever made it may have died before it was bound.
        if holds[app].state == .unknown { declare(app) }
        if count < Self.few { onEmptied?(app) }
      }
      let isAnswered = count != nil || broker.canAsk
      if isAnswered { holds[app].wasAskedFor = true }
      holds[app].due = time.now.advanced(bySeconds: count == nil && isAnswered ? Self.longPause : Self.pause)
      time.schedule(after: 0) { [weak self] in self?.look() }
    }
  }
}
