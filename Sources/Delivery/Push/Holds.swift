import AMQP
import Broker
import Logging
import PushCore
import Wire

/// The broker's hold queues, as a shard's pipeline sees them.
package protocol HoldBroker: AnyObject {
  var canAsk: Bool { get }
  /// Declares the hold queue of an application. The completion says whether it exists now; nil if the connection ended, or is down.
  func declareHold(_ app: String, _ completion: @escaping (Bool?) -> Void)
  /// Whether the application has a hold queue; nil if the broker couldn't be asked.
  func findHold(_ app: String, _ completion: @escaping (Bool?) -> Void)
  /// Ready messages; nil if there is no such queue, or the broker can't be asked.
  func countHeld(_ app: String, _ completion: @escaping (Int?) -> Void)
  func consumeHold(_ app: String, index: Int)
  func flow(_ app: Int) -> HoldFeed.Flow
  func setFlow(_ flow: HoldFeed.Flow, _ app: Int, isForProbe: Bool)
  func acknowledgeHeld(_ token: DeliveryToken, _ app: Int)
  func heldInHand(_ app: Int) -> Int
  var heldInHand: Int { get }
}

/// Knows which applications have a hold queue, and how full it is. The first worker that needs a hold queue declares it. Other
/// workers find it by asking the broker for each application's, a few at a time. The existing queues are counted in turn.
package final class Holds {
  private enum State {
    case unknown
    case declaring
    /// It can be published to from this time on.
    case present(MonotonicTime)
  }

  package weak var broker: (any HoldBroker)?
  /// Called when an application's hold queue is nearly empty.
  var onEmptied: ((Int) -> Void)?
  /// Whether the application needs its hold queue now. Its queue is then declared without a question, which would stay in it: a
  /// paused application's queue isn't consumed.
  var isNeeded: ((Int) -> Bool)?
  private let tools: ShardTools
  /// States other than unknown.
  private var states: [Int: State] = [:]
  package private(set) var present: [Int] = []
  /// Ready requests in each hold queue, as last counted.
  private(set) var ready: [Int: Int] = [:]
  /// When an application's hold queue may be declared again after a refusal.
  private var refusedUntil: [Int: MonotonicTime] = [:]
  /// When the next hold queue may be declared. A failure can end the connection (541, while nodes of the broker are down).
  private var nextDeclaration = MonotonicTime(nanoseconds: 0)
  private var backoff = Backoff(base: 1, cap: 60)
  /// The broker has been asked for all applications before this one.
  private var nextToFind = 0
  private var unanswered: [Int] = []
  private var finding = 0
  private var roundBegan: MonotonicTime
  /// Increases when all applications are to be asked for again.
  private var epoch = 0
  /// The queue to count next, and when.
  private var nextToCount = 0
  private var countDue = MonotonicTime(nanoseconds: 0)
  private var isCounting = false

  /// Seconds from a hold queue's declaration to the first publication: the queue may be new. RabbitMQ 3.10 loses confirmed
  /// messages of a quorum queue that was declared less than a second before the broker is killed.
  private static let settling = 1.25
  /// The number of ready requests below which a hold queue counts as nearly empty.
  private static let few = 64
  /// Seconds until a refused declaration is repeated, and between declarations after a refusal, which closes the channel.
  private static let refusalPause = 60.0
  private static let declarationPause = 1.0
  /// Seconds between two counts of a queue.
  private static let pause = 0.5
  /// Seconds between two searches for missing queues, and the limit of open questions.
  private static let longPause = 600.0
  private static let mostFinding = 64

  init(_ tools: ShardTools) {
    self.tools = tools
    roundBegan = tools.time.now
  }

  private func name(_ app: Int) -> String { String(decoding: tools.apps[app].id, as: UTF8.self) }

  /// Whether the hold queue can be published to. If not, declares it.
  func isPresent(_ app: Int) -> Bool {
    switch states[app] ?? .unknown {
    case .present(let usable): return tools.time.now >= usable
    case .declaring: return false
    case .unknown:
      if tools.time.now >= max(nextDeclaration, refusedUntil[app] ?? nextDeclaration) { declare(app) }
      return false
    }
  }

  private func declare(_ app: Int) {
    guard let broker, broker.canAsk else { return }
    states[app] = .declaring
    broker.declareHold(name(app)) { [weak self] isThere in
      guard let self else { return }
      refusedUntil[app] = nil
      if isThere == true {
        backoff.reset()
        return found(app)
      }
      states[app] = nil
      let pause = isThere == nil ? backoff.next(using: &tools.time.random) : Self.declarationPause
      nextDeclaration = tools.time.now.advanced(bySeconds: pause)
      if isThere == false { refusedUntil[app] = tools.time.now.advanced(bySeconds: Self.refusalPause) }
    }
  }

  private func found(_ app: Int) {
    states[app] = .present(tools.time.now.advanced(bySeconds: Self.settling))
    // An answer from before the last loss may come beside a newer one.
    guard !present.contains(app) else { return }
    present.append(app)
    tools.log.info("the hold queue of an application is ready", ["app": tools.apps[app].id])
    broker?.consumeHold(name(app), index: app)
  }

  /// A hold queue or the connection is gone: searches for all queues again.
  package func lost() {
    states = [:]
    present = []
    ready = [:]
    epoch += 1
    finding = 0
    unanswered = []
    nextToFind = 0
    nextToCount = 0
    isCounting = false
    roundBegan = tools.time.now
  }

  package var report: [HoldReport] {
    present.map { .init(app: tools.apps[$0].id, ready: ready[$0], inHand: broker?.heldInHand($0) ?? 0) }
  }

  /// The search has asked for each application's queue.
  package var areKnown: Bool { nextToFind == tools.apps.indices.upperBound && finding == 0 && unanswered.isEmpty }

  /// To be called several times a second.
  func look() {
    guard let broker, broker.canAsk else { return }
    find(broker)
    count(broker)
  }

  // MARK: finding queues

  private func find(_ broker: any HoldBroker) {
    if areKnown, tools.time.now.seconds(since: roundBegan) >= Self.longPause {
      nextToFind = 0
      roundBegan = tools.time.now
    }
    while finding < Self.mostFinding, broker.canAsk, let app = nextUnknown() {
      if isNeeded?(app) == true {
        declare(app)
        continue
      }
      finding += 1
      broker.findHold(name(app)) { [weak self, epoch] isThere in
        guard let self, epoch == self.epoch else { return }
        finding -= 1
        // Declares it again, because the worker that created it may have died before the binding.
        if isThere == true, states[app] == nil { declare(app) }
        if isThere == nil { unanswered.append(app) } else { tools.time.schedule(after: 0) { [weak self] in self?.look() } }
      }
    }
  }

  private func nextUnknown() -> Int? {
    while nextToFind < tools.apps.indices.upperBound {
      defer { nextToFind += 1 }
      if states[nextToFind] == nil { return nextToFind }
    }
    return unanswered.popLast()
  }

  // MARK: counting

  private func count(_ broker: any HoldBroker) {
    guard !isCounting, !present.isEmpty, countDue <= tools.time.now else { return }
    if nextToCount >= present.count { nextToCount = 0 }
    let app = present[nextToCount]
    nextToCount += 1
    isCounting = true
    broker.countHeld(name(app)) { [weak self, epoch] count in
      guard let self, epoch == self.epoch else { return }
      isCounting = false
      ready[app] = count
      if let count, count < Self.few { onEmptied?(app) }
      // Counts each queue once within the pause.
      countDue = tools.time.now.advanced(bySeconds: Self.pause / Double(max(present.count, 1)))
      tools.time.schedule(at: countDue) { [weak self] in self?.look() }
    }
  }
}
