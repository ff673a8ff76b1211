import HTTP2
import PushCore
import Simulator
import Wire

/// A provider: one of the simulators that `pushfleet simulate` serves, at each of its addresses, and the trouble that it is in.
final class ProviderHouse: Party {
  /// What it does to requests for a while.
  struct Trouble {
    var step: Step
    /// One request in so many.
    var oneIn: Int
    /// The token endpoint's, not the pushes'.
    var isOfTokens = false
    /// The addresses that have it; nil for all.
    var places: Set<String>?
  }

  let platform: Platform
  let journal: Journal
  /// Seconds since the beginning.
  private var goAwayTimes: [Double] = []
  /// On a connection that has nothing to complain of.
  private let mostStreams: Int
  private let clock: Turn
  private var troubles: [Int: Trouble] = [:]
  private var troubleCount = 0
  private var chance: RandomSource
  private var refusals: [Int: (how: Network.Refusal, places: Set<String>?)] = [:]

  init(_ platform: Platform, at places: Set<String>, in world: World) throws {
    self.platform = platform
    mostStreams = platform == .apns ? APNsConfiguration().maxConcurrentStreams : FCMConfiguration().http2.maxConcurrentStreams
    journal = try Journal(keepsEntries: true)
    clock = Turn(now: world.now, wallClock: world.wallClock)
    chance = world.fork()
    super.init(platform == .apns ? "APNs" : "FCM", in: world)
    var ids = world.fork()
    let environment = SimulatorEnvironment(
      wallClock: { [unowned world] in world.wallClock },
      later: { [unowned self] seconds, body in clock.schedule(after: seconds, body) },
      makeUUID: { UUIDText.random(using: &ids) })
    for place in places.sorted() {
      let accept = try Self.serve(platform, journal, environment) { [unowned self] token in step(for: token, at: place) }
      world.network.listen(at: place, self) { [unowned self] _ in
        let refusal = refusals.sorted { $0.key < $1.key }.first { $0.value.places?.contains(place) != false }
        return if let refusal { .failure(.init(how: refusal.value.how)) } else { .success(accept()) }
      }
    }
  }

  private static func serve(
    _ platform: Platform, _ journal: Journal, _ environment: SimulatorEnvironment, _ decide: @escaping ([UInt8]) -> Step?
  ) throws -> () -> any Machine {
    switch platform {
    case .apns:
      let service = try APNsService(configuration: APNsConfiguration(), journal: journal, environment: environment)
      service.decide = decide
      return { service.accept() }
    case .fcm:
      let service = try FCMService(configuration: FCMConfiguration(), journal: journal, environment: environment)
      service.decide = decide
      return { service.accept() }
    }
  }

  override var ownDeadline: MonotonicTime { clock.nextTimer }
  override func turnBegins(at now: MonotonicTime) { clock.begin(now: now, wallClock: world.wallClock) }
  override func act(at now: MonotonicTime) { clock.runTimers() }

  private func step(for token: [UInt8], at place: String) -> Step? {
    let isToken = token.elementsEqual("/token".utf8)
    let lacksTopic = platform == .apns && Workload.lacksTopic(String(decoding: token, as: UTF8.self))
    let refusal = Step(status: 400, reason: "TopicDisallowed")
    for (_, trouble) in troubles.sorted(by: { $0.key < $1.key })
    where trouble.isOfTokens == isToken && trouble.places?.contains(place) != false {
      guard chance.next() % UInt64(trouble.oneIn) == 0 else { continue }
      if case .goAway = trouble.step.fault { goAwayTimes.append(world.elapsed) }
      var step = trouble.step
      if lacksTopic, step.status == nil { (step.status, step.reason) = (refusal.status, refusal.reason) }
      return step
    }
    return lacksTopic ? refusal : nil
  }

  func goAways(since time: Double) -> Int { goAwayTimes.count { $0 >= time } }

  func suffer(_ trouble: Trouble, for seconds: Double, _ words: String) {
    let number = begin("\(words), one in \(trouble.oneIn), for \(seconds) s")
    troubles[number] = trouble
    world.schedule(after: seconds) { [self] in
      troubles[number] = nil
      world.note("\(name): \(words), over")
      if trouble.step.streams != nil { raiseStreams() }
    }
  }

  /// Living connections may have as many streams again as before, unless another trouble takes them away.
  private func raiseStreams() {
    guard !troubles.values.contains(where: { $0.step.streams != nil }) else { return }
    let sessions = ends.filter { !$0.isOver }.compactMap { $0.driver.machine as? ServerSession }
    for session in sessions { session.setMaxConcurrentStreams(mostStreams) }
    world.note("\(name): \(mostStreams) streams on \(sessions.count) connections")
    wake()
  }

  /// New connections are met with it.
  /// - Parameter places: the addresses that have it; nil for all.
  func refuse(_ how: Network.Refusal, at places: Set<String>? = nil, for seconds: Double) {
    let number = begin("takes no connections for \(seconds) s")
    refusals[number] = (how, places)
    world.schedule(after: seconds) { [self] in
      refusals[number] = nil
      world.note("\(name) takes connections again")
    }
  }

  private func begin(_ words: String) -> Int {
    troubleCount += 1
    world.note("\(name): \(words)")
    return troubleCount
  }
}
