import DeviceRegistry
import PushCore
import Simulator
import Wire

/// Faults of some applications' providers or of a push service.
extension FaultInjector {
  func strikeApps(_ kind: FaultKind) {
    if kind != .appTokenHangs, let service = victim() { return strike(kind, service) }
    let apps = victims()
    var platforms: [Platform] = [[.apns], [.fcm], [.apns, .fcm], [.apns, .fcm]][Int.random(in: 0...3, using: &random)]
    if kind == .appTokenHangs { platforms = [.fcm] }
    let end = min(world.elapsed + length(), fleet.scenario.duration + 30)
    var fault = AppFault(
      kind: kind, apps: Set(apps), platforms: Set(platforms), from: world.elapsed, to: end, recovery: 2)
    world.note("\(kind) for \(apps.count == 1 ? "app \(apps[0])" : "\(apps.count) apps"), \(platforms)")
    for platform in platforms {
      let places = fleet.scenario.addresses(platform, of: apps)
      fault.recovery = max(fault.recovery, strike(kind, platform, at: places, for: end - world.elapsed))
    }
    appFaults.all.append(fault)
    world.schedule(after: end - world.elapsed) { [self] in ended(fault) }
  }

  /// Pauses applications, or their credentials for one platform.
  func pauseApps() {
    let apps = victims()
    let end = min(world.elapsed + length(), fleet.scenario.duration + 30)
    let all: Set<Platform> = [.apns, .fcm, .webpush]
    let credential: Platform? =
      random.next() % 2 == 0 ? nil : all.sorted { $0.rawValue < $1.rawValue }.randomElement(using: &random)
    let fault = AppFault(
      kind: .appPaused, apps: Set(apps), platforms: credential.map { [$0] } ?? all, from: world.elapsed, to: end,
      recovery: Self.recovery + Self.controlInterval)
    appFaults.all.append(fault)
    perform(apps, credential, "paused") { .pause($0, until: nil) }
    world.schedule(after: end - world.elapsed) { [self] in
      // Another such pause of the same application may be longer.
      let isOver = { [self] app in
        !appFaults.all.contains {
          $0.kind == .appPaused && $0.apps.contains(app) && $0.platforms == fault.platforms && $0.to > end
        }
      }
      perform(apps.filter(isOver), credential, "resumed") { .resume($0) }
      ended(fault)
    }
  }

  private func perform(
    _ apps: [Int], _ credential: Platform?, _ word: String, _ action: (ControlSubject) -> FleetOperation.Action
  ) {
    world.note("an operator has \(word) \(credential.map { "\($0) of " } ?? "")\(apps)")
    for app in apps {
      let name = Scenario.app(app)
      let subject: ControlSubject =
        credential.map { .credential(Array("\(name)/\($0)".utf8)) } ?? .app(Array(name.utf8))
      let operation = FleetOperation(action(subject), by: Array("operator".utf8), from: [])
      do throws(RegistryError) { _ = try fleet.store.store.perform(operation, now: world.wallClock) } catch {
        world.fail("app \(app) can't be \(word): \(error)")
      }
    }
  }

  /// A push service, in about half of the faults of fleets with web push; nil for applications.
  private func victim() -> PushService? {
    let services = fleet.scenario.services
    guard !services.isEmpty, fleet.scenario.onlyServicesFail || random.next() % 2 == 0 else { return nil }
    return services[Int.random(in: 0..<services.count, using: &random)]
  }

  private func strike(_ kind: FaultKind, _ service: PushService) {
    let duration = min(length(), fleet.scenario.duration + 30 - world.elapsed)
    world.note("\(kind) for \(service.host)")
    _ = strike(kind, .webpush, at: [service.address], for: duration)
    note(kind, of: service, duration)
  }

  /// Usually the application with most requests alone, or all but one.
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

  /// Seconds: usually few, sometimes the whole run.
  private func length() -> Double {
    switch Int.random(in: 0...7, using: &random) {
    case 0: fleet.scenario.duration
    case 1, 2: seconds(20...120)
    default: seconds(1...20)
    }
  }

  /// - Returns: seconds after the end within which a held push must be sent.
  private func strike(_ kind: FaultKind, _ platform: Platform, at places: Set<String>, for duration: Double) -> Double {
    let providers = fleet.providers.filter { $0.platform == platform }
    var fault = SimulatedProvider.Fault(step: Step(), oneIn: 1, places: places)
    var recovery = Self.recovery
    switch kind {
    case .appRefuses, .appUnanswered:
      for provider in providers { provider.refuse(kind == .appRefuses ? .refused : .silent, at: places, for: duration) }
      let isDead = kind == .appUnanswered && random.next() % 2 == 0
      for path in world.network.paths where places.contains(path.address) && !path.isOver {
        if isDead { path.isDead = true } else { path.cut(at: world.now) }
        for end in [path.client, path.server] { end?.participant.wake() }
      }
      if kind == .appUnanswered { recovery += Network.synInterval }
      if isDead { recovery += Self.canary }
      return recovery
    case .appSilent:
      fault.step.fault = .stall
      recovery += Self.canary
    case .appSlow:
      fault.step.delayMilliseconds = random.next() % 2 == 0 ? 4_000 : 20_000
      recovery += Self.canary
    case .appForbidden:
      fault.step = platform == .fcm ? Step(status: 403, reason: "PERMISSION_DENIED") : Refusals(platform).credential
      recovery += Self.probeInterval
    case .appThrottled, .appUnavailable:
      fault.step = kind == .appThrottled ? Refusals(platform).tooMany : Refusals(platform).unavailable
      if random.next() % 2 == 0 { fault.step.retryAfter = "3" }
      recovery += kind == .appThrottled && platform == .fcm ? Self.quotaPause : 3.3
    default:
      fault.step.fault = .stall
      fault.isOfTokens = true
      recovery += Self.tokenFetch
    }
    for provider in providers { provider.suffer(fault, for: duration, "\(kind)") }
    return recovery
  }

  /// Seconds until a provider that is back is tried. First the silence of earlier requests must be noticed and an unanswered
  /// canary given up, or a requested pause must end.
  private static let recovery = 2.0
  private static let canary = 6.0
  private static let quotaPause = 66.0
  private static let probeInterval = 60.0
  private static let tokenFetch = 4.0
  /// Seconds between two looks of a worker at what operators have ordered, with the registry's answer.
  private static let controlInterval = 1.1

  /// Checks that held requests of each application are sent soon.
  private func ended(_ fault: AppFault) {
    for app in fault.apps.sorted() {
      let held = fleet.node.broker.messages(in: "push.hold.\(Scenario.app(app))").compactMap(\.id)
      guard held.contains(where: { fleet.mayBeSent($0, to: fault.platforms, for: fault.recovery) }) else { continue }
      var recovery = max(fault.recovery, appFaults.recovery(of: app, at: world.elapsed))
      // The probe of a stopped credential was lost in the fault, and the next one is a whole interval later.
      if appFaults.mayBeStopped(app, at: fault.from, for: Self.probeInterval) { recovery += Self.probeInterval }
      appFaults.returns.append(
        .init(app: app, platforms: fault.platforms, kind: fault.kind, at: world.elapsed, recovery: recovery))
    }
  }
}
