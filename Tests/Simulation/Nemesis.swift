import BrokerModel
import Simulator
import Wire

/// What befalls a fleet. Each seed has a few kinds of it, so that each kind is also met without the others.
public enum Affliction: String, CaseIterable, Sendable {
  case workerKilled, workerFrozen, workerDrained, workerSkewed
  case brokerCrash, brokerFrozen, brokerAlarm, connectionsClosed, channelsClosed, leaderChanged
  case confirmsLate, confirmsNacked, outcomesUnconfirmed
  case pathCut, pathDead, pathStalled
  case goAway, streamsRefused, streamsReset, streamsStalled, streamsLimited, storm, credentialRefused, tokensGone,
    tokenEndpointHangs,
    providerRefuses
  case registryDown, registryFailsBefore, registryFailsAfter, registrySlow
  case workerReloaded
  /// Some applications' providers alone: nobody listens, or answers; requests are taken and not answered, or late; all are refused for
  /// their credential, for their number, or for want of service; the token endpoint takes requests and doesn't answer.
  case appRefuses, appUnanswered, appSilent, appSlow, appForbidden, appThrottled, appUnavailable, appTokenHangs
  /// The channels that workers take requests from are closed, and not those that they publish on: as after a consumer timeout.
  case consumersClosed

  /// A device may get a push twice for it: what was sent is not known to have arrived, or an acknowledgement is lost.
  var mayDouble: Bool {
    switch self {
    case .goAway, .streamsRefused, .streamsLimited, .storm, .credentialRefused, .tokensGone, .tokenEndpointHangs,
      .providerRefuses,
      .confirmsLate,
      .brokerAlarm, .workerSkewed, .workerReloaded, .registryDown, .registryFailsBefore, .registryFailsAfter, .registrySlow,
      .appForbidden, .appThrottled, .appUnavailable, .appTokenHangs:
      false
    case .workerKilled, .workerFrozen, .workerDrained, .brokerCrash, .brokerFrozen, .connectionsClosed, .channelsClosed,
      .consumersClosed, .leaderChanged, .confirmsNacked, .outcomesUnconfirmed, .pathCut, .pathDead, .pathStalled, .streamsReset,
      .streamsStalled,
      .appRefuses, .appUnanswered, .appSilent, .appSlow:
      true
    }
  }

  /// A worker may give up an answer to a backend's own queue, as that one may be to blame for what the broker does.
  var mayDropReplies: Bool { self == .channelsClosed }

  /// A worker may lose what it has in hand.
  var isLoss: Bool {
    switch self {
    case .workerKilled, .workerFrozen, .workerDrained, .brokerCrash, .brokerFrozen, .connectionsClosed, .channelsClosed,
      .consumersClosed, .leaderChanged, .pathCut, .pathDead, .pathStalled:
      true
    default: false
    }
  }

  /// What reaches a device twice for it doesn't show at the broker: an answer of a provider's is lost, or comes to a worker that no longer
  /// has the request; or a confirm goes to a worker that has given the connection up.
  var doublesUnseen: Bool {
    switch self {
    case .workerFrozen, .brokerFrozen, .brokerAlarm, .pathCut, .pathDead, .pathStalled, .streamsReset, .streamsStalled,
      .appRefuses,
      .appUnanswered, .appSilent, .appSlow:
      true
    default: false
    }
  }

  /// Confirms may not come for so long that a worker takes the queue for stuck, and reads on meanwhile.
  var mayHoldConfirms: Bool {
    switch self {
    case .outcomesUnconfirmed, .brokerFrozen, .brokerAlarm, .leaderChanged, .workerFrozen, .pathDead, .pathStalled: true
    default: false
    }
  }

  /// A copy that a worker publishes may arrive long after it was written, or be published again on another channel.
  var mayDelayCopies: Bool {
    switch self {
    case .consumersClosed: false
    case .confirmsNacked, .outcomesUnconfirmed: true
    default: isLoss
    }
  }

  /// It befalls the providers of some applications.
  var isOfApps: Bool {
    switch self {
    case .appRefuses, .appUnanswered, .appSilent, .appSlow, .appForbidden, .appThrottled, .appUnavailable, .appTokenHangs: true
    default: false
    }
  }
}

/// Plans and does what befalls a fleet, from a seed of its own.
final class Nemesis {
  /// One thing that befalls the fleet. What it is in particular follows from its own seed, whatever else is planned.
  private struct Event {
    var time: Double
    var kind: Affliction
    var seed: UInt64
  }

  unowned let fleet: FleetSimulation
  let world: World
  var random: RandomSource
  private var events: [Event] = []
  let kinds: [Affliction]
  private(set) var calm: Calm
  var appTroubles = AppTroubles()
  /// How many events are planned.
  var count: Int { events.count }
  var losses: Int { events.count { $0.kind.isLoss } }

  /// - Parameters:
  ///   - selection: leaves some out, when a failure is made smaller.
  init(_ fleet: FleetSimulation, _ world: World, selection: Selection) {
    self.fleet = fleet
    self.world = world
    random = world.fork()
    calm = Calm(isKnown: fleet.scenario.prefetch == Scenario.usualPrefetch)
    let divides = fleet.scenario.ownsProviders
    let isHalf = random.next() % 2 == 0
    let isOfAppsAlone = divides && isHalf
    let share = Int.random(in: 0...3, using: &random)
    let isTimed = Self.isTimed(world.seed)
    for kind in Affliction.allCases {
      let isMeant = isTimed ? Calm.knowsEnd(of: kind) : kind.isOfApps ? divides : !isOfAppsAlone
      let isIn = Int.random(in: 0..<10, using: &random) < share && isMeant
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let event = Event(time: Self.moment(of: kind, fleet.scenario, &random), kind: kind, seed: random.next())
        if selection.kinds?.contains(kind) ?? isIn { events.append(event) }
      }
    }
    events.sort { $0.time < $1.time }
    if let events = selection.events {
      self.events = self.events.enumerated().filter { events.contains($0.offset) }.map(\.element)
    }
    let planned = Set(events.map(\.kind))
    kinds = Affliction.allCases.filter(planned.contains)
    for event in events {
      world.schedule(after: event.time) { [self] in
        random = RandomSource(seed: event.seed)
        strike(event.kind)
      }
    }
  }

  /// In every eighth seed that only befalls a fleet whose end is known, so that it shows how soon pushes go out again.
  private static func isTimed(_ seed: UInt64) -> Bool {
    var random = RandomSource(seed: seed ^ 0x7469_6D65)
    return random.next() % 8 == 0
  }

  /// Some of what befalls single applications comes a moment before most of one's requests do.
  private static func moment(of kind: Affliction, _ scenario: Scenario, _ random: inout RandomSource) -> Double {
    let time = scenario.moment(after: 1, within: burst, &random)
    guard kind.isOfApps, let surge = scenario.surge, random.next() % 2 == 0 else { return time }
    return max(1, surge - Double.random(in: 0...3, using: &random))
  }

  /// Seconds from the beat within which trouble comes, where it comes together.
  private static let burst = 0.3

  /// What of a seed's events is to happen; all where nothing is said.
  struct Selection {
    var kinds: Set<Affliction>?
    /// By their places in time, of the kinds selected.
    var events: Set<Int>?
  }

  /// Milliseconds by which a worker's clock is off.
  static let mostSkew: Int64 = 4_000

  func seconds(_ range: ClosedRange<Int>) -> Double { Double(Int.random(in: range, using: &random)) }

  /// - Returns: the seconds that it lasts.
  @discardableResult
  private func note(_ kind: Affliction, _ seconds: Double) -> Double {
    calm.note(kind, from: world.elapsed, for: seconds)
    return seconds
  }

  private func strike(_ kind: Affliction) {
    switch kind {
    case .workerKilled, .workerFrozen, .workerDrained, .workerSkewed, .workerReloaded: strikeWorker(kind)
    case .brokerCrash: fleet.node.crash(for: note(kind, seconds(1...20)))
    case .brokerFrozen: fleet.node.freeze(for: note(kind, seconds(1...40)))
    case .brokerAlarm: fleet.node.raiseAlarm(for: note(kind, seconds(1...40)))
    case .leaderChanged:
      note(kind, 0)
      world.note("what is in hand is delivered again")
      fleet.node.broker.deliverAgain(at: world.now)
      fleet.node.wake()
    case .connectionsClosed:
      note(kind, 0)
      world.note("connections are closed")
      fleet.node.broker.closeConnections(at: world.now) { _ in true }
      fleet.node.wake()
    case .channelsClosed:
      note(kind, 0)
      world.note("channels are closed")
      fleet.node.broker.closeChannels(at: world.now) { $0.name != "producer" }
      fleet.node.wake()
    case .consumersClosed:
      note(kind, 0)
      world.note("consumers' channels are closed")
      fleet.node.broker.closeChannels(reason: "delivery acknowledgement timed out", at: world.now) {
        $0.name.hasSuffix(", consuming") || $0.name.hasSuffix(", hold queues")
      }
      fleet.node.wake()
    case .confirmsLate, .confirmsNacked: strikeConfirms(kind)
    case .outcomesUnconfirmed: withholdOutcomes()
    case .pathCut, .pathDead, .pathStalled: strikePath(kind)
    case .registryDown, .registryFailsBefore, .registryFailsAfter, .registrySlow: strikeRegistry(kind)
    case .goAway, .streamsRefused, .streamsReset, .streamsStalled, .streamsLimited, .storm, .credentialRefused, .tokensGone,
      .tokenEndpointHangs,
      .providerRefuses:
      strikeProvider(kind)
    case .appRefuses, .appUnanswered, .appSilent, .appSlow, .appForbidden, .appThrottled, .appUnavailable, .appTokenHangs:
      strikeApps(kind)
    }
  }

  private func strikeWorker(_ kind: Affliction) {
    note(kind, 0)
    let worker = fleet.workers[Int.random(in: 0..<fleet.workers.count, using: &random)]
    guard worker.isRunning, !worker.isFrozen else { return }
    let pause = seconds(1...30)
    switch kind {
    case .workerKilled:
      worker.kill()
      world.schedule(after: pause) { worker.start() }
    case .workerFrozen:
      world.note("\(worker.name) is stopped")
      worker.isFrozen = true
      world.schedule(after: pause * 2) { [world] in
        world.note("\(worker.name) goes on")
        worker.isFrozen = false
        worker.wake()
      }
    case .workerDrained:
      worker.drain()
      world.schedule(after: pause + 25) { [weak self] in self?.startWhenEnded(worker) }
    case .workerReloaded: worker.reload()
    default:
      worker.clockSkew = Int64.random(in: -Self.mostSkew...Self.mostSkew, using: &random)
      world.note("\(worker.name)'s clock is off by \(worker.clockSkew) ms")
    }
  }

  /// One that stood still while it drained takes longer.
  private func startWhenEnded(_ worker: WorkerProcess) {
    guard worker.isRunning else { return worker.start() }
    world.schedule(after: 1) { [weak self] in self?.startWhenEnded(worker) }
  }

  private func strikeConfirms(_ kind: Affliction) {
    let oneIn = UInt64(Int.random(in: 2...10, using: &random))
    let most = seconds(1...8)
    var chance = RandomSource(seed: random.next())
    let duration = note(kind, seconds(5...30))
    world.note("\(kind)")
    fleet.node.broker.confirmation = { message, client in
      guard chance.next() % oneIn == 0, client.name != "producer" else { return .ack(after: 0) }
      let delay = Double(chance.next() % 1000) / 1000 * most
      // A backend's queue that refuses an answer often enough loses it.
      let isAnswer = message.routingKey.elementsEqual(Producer.replies.utf8)
      return kind == .confirmsLate || isAnswer ? .ack(after: delay) : .nack(after: delay, isKept: chance.next() % 2 == 0)
    }
    world.schedule(after: duration) { [fleet, world] in
      world.note("\(kind), over")
      fleet.node.broker.confirmation = { _, _ in .ack(after: 0) }
    }
  }

  /// As where the queue of results has no majority.
  private func withholdOutcomes() {
    let duration = seconds(5...60)
    note(.outcomesUnconfirmed, duration)
    world.note("results are not confirmed for \(duration) s")
    let end = world.now.advanced(bySeconds: duration)
    fleet.node.broker.confirmation = { [world] message, _ in
      .ack(after: message.routingKey.starts(with: "result.".utf8) ? max(0, end.seconds(since: world.now)) : 0)
    }
    world.schedule(after: duration) { [fleet] in fleet.node.broker.confirmation = { _, _ in .ack(after: 0) } }
  }

  private func strikePath(_ kind: Affliction) {
    note(kind, 0)
    let paths = world.network.paths.filter { !$0.isOver }
    guard !paths.isEmpty else { return }
    let path = paths[Int.random(in: 0..<paths.count, using: &random)]
    world.note("\(kind): \(path.name)")
    switch kind {
    case .pathCut: path.cut(at: world.now)
    case .pathDead: path.isDead = true
    default: path.stalledUntil = world.now.advanced(bySeconds: seconds(1...20))
    }
    for end in [path.client, path.server] { end?.party.wake() }
  }

  private func strikeRegistry(_ kind: Affliction) {
    note(kind, 0)
    let shared = fleet.store
    world.note("\(kind)")
    switch kind {
    case .registryDown:
      shared.isDown = true
    case .registrySlow:
      shared.slowest = 2
    default:
      var chance = RandomSource(seed: random.next())
      let oneIn = UInt64(Int.random(in: 2...12, using: &random))
      shared.fault = { chance.next() % oneIn != 0 ? nil : kind == .registryFailsBefore ? .before : .after }
    }
    world.schedule(after: seconds(2...25)) { [world] in
      world.note("\(kind), over")
      shared.isDown = false
      shared.slowest = 0
      shared.fault = { nil }
    }
  }

  private func strikeProvider(_ kind: Affliction) {
    let provider = fleet.providers[Int.random(in: 0..<fleet.providers.count, using: &random)]
    let isAPNs = provider.platform == .apns
    let oneIn = [1, 2, 5, 20][Int.random(in: 0...3, using: &random)]
    var step = Step()
    switch kind {
    case .goAway:
      var plan = Step.GoAwayPlan()
      // Never one that denies what has been answered.
      plan.lastStream = [.this, .previous, .max][Int.random(in: 0...2, using: &random)]
      step.fault = .goAway(plan)
    case .streamsRefused: step.fault = .refuse
    case .streamsReset: step.fault = .reset(.internalError)
    case .streamsStalled: step.fault = .stall
    case .streamsLimited: step.streams = Int.random(in: 0...8, using: &random)
    case .storm:
      let answers =
        isAPNs ? [(429, "TooManyRequests"), (503, "ServiceUnavailable")] : [(429, "QUOTA_EXCEEDED"), (503, "UNAVAILABLE")]
      let (status, reason) = answers[Int.random(in: 0...1, using: &random)]
      step = Step(status: status, reason: reason)
      if random.next() % 2 == 0 { step.retryAfter = "3" }
    case .credentialRefused:
      step = isAPNs ? Step(status: 403, reason: "InvalidProviderToken") : Step(status: 403, reason: "SENDER_ID_MISMATCH")
    case .tokensGone: step = isAPNs ? Step(status: 410, reason: "Unregistered") : Step(status: 404, reason: "UNREGISTERED")
    case .tokenEndpointHangs: step.fault = .stall
    default:
      note(kind, 0)
      return provider.refuse(random.next() % 2 == 0 ? .refused : .silent, for: seconds(2...40))
    }
    let duration = seconds(1...20)
    // A provider that says goodbye to everything is one that can't be reached.
    if kind == .goAway, oneIn > 1 { noteGoAways(of: provider, for: duration) } else { note(.providerRefuses, duration) }
    provider.suffer(.init(step: step, oneIn: oneIn, isOfTokens: kind == .tokenEndpointHangs), for: duration, "\(kind)")
  }

  private func noteGoAways(of provider: ProviderHouse, for duration: Double) {
    let start = world.elapsed
    note(.goAway, duration)
    world.schedule(after: duration) { [self] in
      if provider.goAways(since: world.elapsed - Calm.dialWindow) <= Self.fewGoAways { calm.fewGoAways(since: start) }
    }
  }

  /// With the connection that was there before, fewer than a pool makes at once.
  private static let fewGoAways = 4
}
