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

  weak var broker: (any HoldBroker)?
  /// What is held of an application is as good as nothing.
  var onEmptied: ((Int) -> Void)?
  private let apps: [String]
  private let time: Turn
  private let log: Log
  private var states: [State]
  private var isAsking = false
  /// When to ask for each again.
  private var due: [MonotonicTime]
  private var failedAt: MonotonicTime?
  /// Each application's has been asked for since the start, or since they were lost.
  var areKnown: Bool { unasked == 0 }
  private var unasked: Int
  private var wasAsked: [Bool]

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
    states = Array(repeating: .unknown, count: apps.count)
    due = Array(repeating: MonotonicTime(nanoseconds: 0), count: apps.count)
    unasked = apps.count
    wasAsked = Array(repeating: false, count: apps.count)
  }

  /// Whether requests can be put there now; if not, that is seen to.
  func isPresent(_ app: Int) -> Bool {
    switch states[app] {
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
    broker.declareHold(apps[app]) { [weak self] isThere in
      guard let self else { return }
      guard isThere else {
        states[app] = .unknown
        failedAt = time.now
        return
      }
      found(app)
    }
  }

  private func found(_ app: Int) {
    guard states[app] != .present else { return }
    states[app] = .present
    log.info("an application's requests can be held", ["app": apps[app]])
    broker?.consumeHold(apps[app], index: app)
  }

  /// A queue that was there is gone, or their connection is: which are there is asked for anew.
  func lost() {
    for app in states.indices { states[app] = .unknown }
    unasked = apps.count
    for app in due.indices {
      due[app] = time.now
      wasAsked[app] = false
    }
  }

  /// Applications whose hold queue is there.
  var presentIndices: [Int] { states.indices.filter { if case .present = states[$0] { true } else { false } } }
  var present: [String] { presentIndices.map { apps[$0] } }

  /// To be called several times a second: asks for one application's after the other.
  func look() {
    guard let broker, !isAsking, broker.canAsk else { return }
    guard let app = due.indices.min(by: { due[$0] < due[$1] }), due[app] <= time.now else { return }
    isAsking = true
    broker.countHeld(apps[app]) { [weak self] count in
      guard let self else { return }
      isAsking = false
      if let count {
        // Declared once more: whoever made it may have died before it was bound.
        if states[app] == .unknown { declare(app) }
        if count < Self.few { onEmptied?(app) }
      }
      if !wasAsked[app], count != nil || broker.canAsk {
        wasAsked[app] = true
        unasked -= 1
      }
      let isMissing = count == nil && broker.canAsk
      due[app] = time.now.advanced(bySeconds: isMissing ? Self.longPause : Self.pause)
      time.schedule(after: 0) { [weak self] in self?.look() }
    }
  }
}
