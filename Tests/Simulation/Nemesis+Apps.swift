import PushCore
import Simulator
import Wire

/// What befalls the providers of some applications while the others' serve.
extension Nemesis {
  func strikeApps(_ kind: Affliction) {
    let apps = victims()
    var platforms: [Platform] = [[.apns], [.fcm], [.apns, .fcm], [.apns, .fcm]][Int.random(in: 0...3, using: &random)]
    if kind == .appTokenHangs { platforms = [.fcm] }
    let end = min(world.elapsed + length(), fleet.scenario.duration + 30)
    var trouble = AppTrouble(
      kind: kind, apps: Set(apps), platforms: Set(platforms), from: world.elapsed, to: end, recovery: 2)
    world.note("\(kind) for \(apps.count == 1 ? "app \(apps[0])" : "\(apps.count) apps"), \(platforms)")
    for platform in platforms {
      trouble.recovery = max(trouble.recovery, strike(kind, platform, apps, for: end - world.elapsed))
    }
    appTroubles.all.append(trouble)
    world.schedule(after: end - world.elapsed) { [self] in ended(trouble) }
  }

  /// Mostly the loud application alone, or all but one.
  private func victims() -> [Int] {
    let all = fleet.scenario.apps
    let one = Int.random(in: 0..<all, using: &random)
    switch Int.random(in: 0...3, using: &random) {
    case 0: return [fleet.scenario.loud ?? one]
    case 1: return [one]
    case 2: return (0..<all).filter { $0 != one }
    default: return (0..<all).filter { _ in random.next() % 2 == 0 }
    }
  }

  /// Seconds: mostly few, now and then as long as everything lasts.
  private func length() -> Double {
    switch Int.random(in: 0...7, using: &random) {
    case 0: fleet.scenario.duration
    case 1, 2: seconds(20...120)
    default: seconds(1...20)
    }
  }

  /// - Returns: seconds after the end within which a push goes out where one is held.
  private func strike(_ kind: Affliction, _ platform: Platform, _ apps: [Int], for duration: Double) -> Double {
    let places = fleet.scenario.addresses(platform, of: apps)
    let houses = fleet.providers.filter { $0.platform == platform }
    var trouble = ProviderHouse.Trouble(step: Step(), oneIn: 1, places: places)
    var recovery = Self.recovery
    switch kind {
    case .appRefuses, .appUnanswered:
      for house in houses { house.refuse(kind == .appRefuses ? .refused : .silent, at: places, for: duration) }
      let isDead = kind == .appUnanswered && random.next() % 2 == 0
      for path in world.network.paths where places.contains(path.address) && !path.isOver {
        if isDead { path.isDead = true } else { path.cut(at: world.now) }
        for end in [path.client, path.server] { end?.party.wake() }
      }
      if kind == .appUnanswered { recovery += Network.synInterval }
      if isDead { recovery += Self.canary }
      return recovery
    case .appSilent:
      trouble.step.fault = .stall
      recovery += Self.canary
    case .appSlow:
      trouble.step.delayMilliseconds = random.next() % 2 == 0 ? 4_000 : 20_000
      recovery += Self.canary
    case .appForbidden:
      trouble.step =
        platform == .apns
        ? Step(status: 403, reason: "InvalidProviderToken") : Step(status: 403, reason: "PERMISSION_DENIED")
      recovery += Self.probeInterval
    case .appThrottled, .appUnavailable:
      let answers =
        platform == .apns
        ? [(429, "TooManyRequests"), (503, "ServiceUnavailable")] : [(429, "QUOTA_EXCEEDED"), (503, "UNAVAILABLE")]
      let (status, reason) = answers[kind == .appThrottled ? 0 : 1]
      trouble.step = Step(status: status, reason: reason)
      if random.next() % 2 == 0 { trouble.step.retryAfter = "3" }
      recovery += kind == .appThrottled && platform == .fcm ? Self.quotaPause : 3.3
    default:
      trouble.step.fault = .stall
      trouble.isOfTokens = true
      recovery += Self.tokenFetch
    }
    for house in houses { house.suffer(trouble, for: duration, "\(kind)") }
    return recovery
  }

  /// Seconds: until a provider that is back is tried, and for what was under way when it came back: its silence is noticed first, and a canary that
  /// it didn't answer given up; a pause that an answer asked for is over.
  private static let recovery = 2.0
  private static let canary = 6.0
  private static let quotaPause = 66.0
  private static let probeInterval = 60.0
  private static let tokenFetch = 4.0

  /// What is held of each application now is to go out soon.
  private func ended(_ trouble: AppTrouble) {
    for app in trouble.apps.sorted() {
      let held = fleet.node.broker.messages(in: "push.hold.\(Scenario.app(app))").compactMap(\.id)
      guard held.contains(where: { fleet.mayBeSent($0, to: trouble.platforms, for: trouble.recovery) }) else { continue }
      var recovery = max(trouble.recovery, appTroubles.recovery(of: app, at: world.elapsed))
      // What was to try a stopped credential meanwhile is lost, and the next one is as far away.
      if appTroubles.mayBeStopped(app, at: trouble.from, for: Self.probeInterval) { recovery += Self.probeInterval }
      appTroubles.returns.append(
        .init(app: app, platforms: trouble.platforms, kind: trouble.kind, at: world.elapsed, recovery: recovery))
    }
  }
}
