import Broker
import DeviceRegistry
import Logging
import Providers
import PushCore
import Wire

/// A shard's copy of what operators have ordered. It is read from the registry once a second; without an answer the last one
/// stays in force.
package final class Controls {
  private let tools: ShardTools
  /// All controls that differ from the default. Some may be for applications that this worker doesn't know.
  package private(set) var all: [Control] = []
  /// By application.
  private var byApp: [Int: Control] = [:]
  /// False if no application has a control. A request then asks nothing else.
  private(set) var hasOrders = false
  /// An application or a lane is drained.
  private(set) var hasDrains = false
  /// The applications and credentials that weren't running at the last look.
  private var noted: [ControlSubject: Control] = [:]
  private var lanes: [WorkQueue: Control] = [:]
  /// The orders for pools of credentials, by application.
  private var byPool: [Int: [Int: Control]] = [:] { didSet { hasPoolOrders = !byPool.isEmpty } }
  private(set) var hasPoolOrders = false
  /// For how many pushes copies are on the ladder because their credential is paused, by the second of their return.
  private var onLadder: [ControlSubject: [Int64: Int]] = [:]
  /// False until the registry has answered once. Hold queues aren't consumed before.
  package private(set) var areKnown: Bool
  /// By application.
  private var grants: [Int: Grant] = [:]
  private(set) var hasRates = false
  private var isAsking = false
  /// Called after each answer of the registry.
  package var onRead: (() -> Void)?

  package init(_ tools: ShardTools) {
    self.tools = tools
    areKnown = tools.registry == nil
  }

  /// To be called about once a second.
  /// - Parameter then: called once, with or without an answer.
  package func look(then: @escaping () -> Void = {}) {
    guard let registry = tools.registry, !isAsking else { return then() }
    isAsking = true
    registry.call(.read { try $0.controls() }) { [weak self] result in
      if let self {
        isAsking = false
        let answer = try? result.get()
        if answer != nil { areKnown = true }
        // Without an answer, a control may still end by itself.
        take(answer ?? all)
      }
      then()
    }
  }

  private func take(_ controls: [Control]) {
    let now = tools.time.wallClock
    var byApp: [Int: Control] = [:]
    var lanes: [WorkQueue: Control] = [:]
    for control in controls {
      switch control.subject {
      case .app(let id): if let app = tools.apps.place(of: id) { byApp[app] = control }
      case .lane(let name):
        if control.mode(at: now) != .running, let lane = WorkQueue(origin: name) { lanes[lane] = control }
      case .credential, .webhook: break
      }
    }
    all = controls
    noteChanges(at: now)
    self.byApp = byApp
    self.lanes = lanes
    hasOrders = !byApp.isEmpty
    hasDrains = [byApp.values.map(\.self), lanes.values.map(\.self)].joined().contains { $0.mode(at: now) == .draining }
    onLadder = onLadder.filter { noted[$0.key] != nil }
    hasRates = byApp.values.contains { $0.rate != nil }
    if !hasRates { grants = [:] }
    findOrdersForPools()
    onRead?()
  }

  private func noteChanges(at now: Int64) {
    let former = noted
    noted = [:]
    for control in all where control.mode(at: now) != .running {
      switch control.subject {
      case .app, .credential: if tools.apps.place(of: control.subject.app ?? []) != nil { noted[control.subject] = control }
      case .lane: noted[control.subject] = control
      case .webhook: break
      }
    }
    for subject in Set(noted.keys).union(former.keys).sorted(by: { ($0.kind, $0.text) < ($1.kind, $1.text) })
    where noted[subject]?.mode != former[subject]?.mode {
      tools.log.info(
        "an operator has changed \(subject.kind == "app" ? "an application's" : "a \(subject.kind)'s") state",
        [
          subject.kind: subject.text, "state": (noted[subject]?.mode ?? .running).rawValue,
          "reason": String(decoding: noted[subject]?.reason ?? [], as: UTF8.self),
        ])
    }
  }

  /// To be called after each change of the applications' pools.
  func findOrdersForPools() {
    let now = tools.time.wallClock
    byPool = all.reduce(into: [:]) { orders, control in
      guard case .credential = control.subject, control.mode(at: now) != .running || control.discards(at: now),
        let app = control.subject.app.flatMap({ tools.apps.index(of: $0) })
      else { return }
      for pool in tools.apps[app].pools(of: control.subject.text) {
        orders[pool, default: [:]][app] = control.joined(orders[pool]?[app], at: now)
      }
    }
  }

  /// The order for an application's pushes by the pool's credential.
  func order(for pool: Int, of app: Int?) -> Control? { app.flatMap { byPool[pool]?[$0] } }

  func isPaused(_ pool: Int, of app: Int?) -> Bool {
    hasPoolOrders && order(for: pool, of: app)?.mode(at: tools.time.wallClock) == .paused
  }

  /// The order for the pool's credential, perhaps only for some of its applications.
  package func mode(ofPool pool: Int) -> Control.Mode {
    guard hasPoolOrders, let orders = byPool[pool]?.values else { return .running }
    let modes = orders.map { $0.mode(at: tools.time.wallClock) }
    return modes.contains(.paused) ? .paused : modes.contains(.draining) ? .draining : .running
  }

  /// A push for a paused credential goes to the ladder.
  /// - Parameter time: when it returns, in Unix milliseconds.
  func waits(for credential: ControlSubject, until time: Int64) {
    let second = time / 1_000
    if onLadder[credential]?[second] == nil {
      onLadder[credential] = onLadder[credential]?.filter { $0.key >= tools.time.wallClock / 1_000 }
    }
    onLadder[credential, default: [:]][second, default: 0] += 1
  }

  /// The controls with the number of pushes on the ladder.
  package var report: [Control] {
    guard !onLadder.isEmpty else { return all }
    let second = tools.time.wallClock / 1_000
    return all.map { control in
      var control = control
      control.waiting = onLadder[control.subject]?.reduce(0) { $1.key > second ? $0 + $1.value : $0 } ?? 0
      return control
    }
  }

  package func mode(of app: Int) -> Control.Mode {
    hasOrders ? byApp[app]?.mode(at: tools.time.wallClock) ?? .running : .running
  }

  func isPaused(_ app: Int?) -> Bool { app.map { mode(of: $0) } == .paused }

  /// The orders that drain the application or one of the lanes.
  func drains(of app: Int?, _ queues: [WorkQueue]) -> [Control] {
    let orders = queues.map { lanes[$0] } + [app.flatMap { byApp[$0] }]
    return orders.compactMap(\.self).filter { $0.mode(at: tools.time.wallClock) == .draining }
  }

  package var pausedLanes: Set<WorkQueue> { Set(lanes.filter { $0.value.mode(at: tools.time.wallClock) == .paused }.keys) }

  // MARK: rates

  /// Pushes of an application with a rate, which the registry has granted to this shard.
  private struct Grant {
    var left: Int64 = 0
    /// The number that was wanted last.
    var wanted: Int64 = 0
    var at = MonotonicTime(nanoseconds: 0)
    var isAsked = false
  }

  /// Seconds between two questions while the rate is used up.
  private static let grantPause = 0.1
  /// Seconds after which an unused grant ends.
  private static let grantLife = 1.0

  /// The number of pushes that may be sent now for each of the applications. If there are none, the shard gets a turn when there are.
  func allowance(of apps: Set<Int>) -> Int {
    apps.reduce(Int.max) { least, app in
      guard let rate = byApp[app]?.rate else { return least }
      var grant = grants[app] ?? Grant()
      if tools.time.now.seconds(since: grant.at) > Self.grantLife { (grant.left, grant.wanted) = (0, 0) }
      guard grant.left <= 0, !grant.isAsked else { return min(least, Int(grant.left)) }
      // Twice as many as were used up since the last grant.
      grant.wanted = min(grant.wanted * 2 + 1, rate)
      grant.isAsked = true
      grants[app] = grant
      ask(for: app, grant.wanted, rate)
      return min(least, Int(grants[app]?.left ?? 0))
    }
  }

  private func ask(for app: Int, _ wanted: Int64, _ rate: Int64) {
    let id = tools.apps.id(of: app)
    tools.registry?.call(.write(.campaigns) { try $0.grantPushes(wanted, of: id, now: $1) }) { [weak self] result in
      guard let self else { return }
      let granted = try? result.get()
      // Without the registry, each shard sends slowly.
      grants[app]?.left = granted ?? 1
      grants[app]?.at = tools.time.now
      let pause = granted == wanted ? 0 : granted == nil ? max(Self.grantPause, 1 / Double(rate)) : Self.grantPause
      tools.time.schedule(after: pause) { [weak self] in
        self?.grants[app]?.isAsked = false
        self?.tools.time.ensureHooksRun()
      }
    }
  }

  func sent(for app: Int?) {
    if let app { grants[app]?.left -= 1 }
  }

  var pausedApps: [Int] { byApp.keys.filter(isPaused).sorted() }

  /// Milliseconds since an operator paused the application.
  func pausedFor(_ app: Int) -> Int64 { byApp[app]?.since.map { tools.time.wallClock - $0 } ?? 0 }
}
