import PushCore

/// The longest waits, in seconds.
public struct Delays: Sendable {
  /// For a push of an application and push service without a fault, while others had one.
  public private(set) var beside = 0.0
  /// For an application's first push after its fault, by kind.
  public private(set) var after: [FaultKind: Double] = [:]

  public init() {}

  mutating func noteBeside(_ seconds: Double) { beside = max(beside, seconds) }
  mutating func note(after kind: FaultKind, _ seconds: Double) { after[kind] = max(after[kind] ?? 0, seconds) }

  public mutating func merge(_ other: Delays) {
    noteBeside(other.beside)
    for (kind, seconds) in other.after { note(after: kind, seconds) }
  }
}

/// Checks the isolation of applications and push services: a fault affects no other, loses nothing, and is over when it ends.
struct AppAudit {
  let recorder: OutcomeRecorder
  let world: World
  let faultFreeTimes: FaultFreeTimes
  let faults: AppFaults
  private(set) var delays = Delays()

  /// Seconds within which a push without a fault of its own must be sent while others have one.
  static let isolation = 2.0

  init(_ audit: FinalAudit) {
    recorder = audit.recorder
    world = audit.world
    faultFreeTimes = audit.faultFreeTimes
    faults = audit.faults
  }

  mutating func run(isAlone: Bool) {
    guard !faults.all.isEmpty else { return }
    for id in recorder.requests.keys.sorted() {
      guard let request = recorder.requests[id], case .tokens(let tokens) = request.audience, !request.isRefused else {
        continue
      }
      checkNeighbour(request, tokens)
      if isAlone, tokens.count == 1 { checkFate(request, tokens[0]) }
    }
    for back in faults.returns { check(back) }
  }

  private func elapsed(at wallClock: Int64) -> Double { world.elapsed - Double(world.wallClock - wallClock) / 1000 }

  private mutating func checkNeighbour(_ request: Request, _ tokens: [String]) {
    guard let accepted = recorder.acceptedAt[request.id] else { return }
    let time = elapsed(at: accepted)
    guard faultFreeTimes.holds(at: time, for: Self.isolation), faults.areFelt(at: time, for: Self.isolation),
      !faults.areFelt(by: request.app, at: time, for: Self.isolation)
    else { return }
    let result = recorder.results[request.id]?.last
    for (index, token) in tokens.enumerated() where !faults.areFelt(by: FinalAudit.own(token), at: time, for: Self.isolation) {
      var first = recorder.delivered[request.id]?[FinalAudit.own(token)]?.min() ?? .max
      // A push replaced by a newer one while it waited has that outcome instead.
      if let result, result.isCollapsed(index, of: tokens.count) { first = min(first, result.at) }
      let delay = first == .max ? .infinity : Double(first - accepted) / 1000
      delays.noteBeside(delay)
      if delay > Self.isolation {
        world.fail("\(request.id): \(token) was sent \(delay) s after \(time) s, while only others were in trouble")
      }
    }
  }

  /// A failed push must have used all its attempts, or its time must be over.
  private func checkFate(_ request: Request, _ token: String) {
    guard request.lifetime != 0, let result = recorder.results[request.id]?.last, let error = result.errors.first ?? nil else {
      return
    }
    if error == "Expired" {
      if result.at < request.deadline - 1_000 { world.fail("\(request.id) expired before its time") }
      return
    }
    if error == "Collapsed" { return }
    // A push with a lifetime of minutes ends when its next attempt would be too late.
    let attempts = recorder.attempts[request.id]?[FinalAudit.own(token)] ?? 0
    let least = request.lifetime == nil && !faults.all.contains { $0.kind == .appForbidden } ? Scenario.attempts : 1
    if attempts < least { world.fail("\(request.id) failed with \(error) after \(attempts) attempts") }
  }

  private mutating func check(_ back: AppFaults.Return) {
    guard faultFreeTimes.holds(at: back.at, for: back.recovery),
      !faults.hasFault(back.app, after: back.at, for: back.recovery)
    else { return }
    let times = back.platforms.flatMap { recorder.deliveries[AppRoute(app: back.app, platform: $0)] ?? [] }
    let delay = (times.map { elapsed(at: $0) }.filter { $0 >= back.at }.min() ?? .infinity) - back.at
    delays.note(after: back.kind, delay)
    if delay > back.recovery {
      world.fail("app \(back.app): nothing sent for \(delay) s after \(back.kind), though requests were held")
    }
  }
}

extension FinalAudit {
  func checkApps() -> Delays {
    var audit = AppAudit(self)
    audit.run(isAlone: faultKinds.allSatisfy(\.isOfApps))
    return audit.delays
  }
}
