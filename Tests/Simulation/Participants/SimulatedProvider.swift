import HTTP2
import PushCore
import Simulator
import Wire

/// A provider: a simulator of `pushfleet simulate` at each of its addresses, and its faults.
final class SimulatedProvider: Participant {
  /// A temporary fault for requests.
  struct Fault {
    var step: Step
    /// Applies to one request in this many.
    var oneIn: Int
    /// True for requests to the token endpoint, false for pushes.
    var isOfTokens = false
    /// The affected addresses; nil for all.
    var places: Set<String>?
  }

  let platform: Platform
  /// Nil for APNs and FCM.
  let service: PushService?
  let journal: Journal
  /// Seconds since the beginning.
  private var goAwayTimes: [Double] = []
  /// Streams of a connection without faults.
  private let mostStreams: Int
  private let clock: Turn
  private var faults: [Int: Fault] = [:]
  private var faultCount = 0
  private var chance: RandomSource
  private var refusals: [Int: (how: Network.Refusal, places: Set<String>?)] = [:]

  convenience init(_ service: PushService, in world: World) throws {
    try self.init(.webpush, service, at: [service.address], in: world)
  }

  init(_ platform: Platform, _ service: PushService? = nil, at places: Set<String>, in world: World) throws {
    self.platform = platform
    self.service = service
    mostStreams =
      switch platform {
      case .apns: APNsConfiguration().maxConcurrentStreams
      case .fcm: FCMConfiguration().http2.maxConcurrentStreams
      case .webpush: WebPushConfiguration().http2.maxConcurrentStreams
      }
    journal = try Journal(keepsEntries: true)
    clock = Turn(now: world.now, wallClock: world.wallClock)
    chance = world.fork()
    super.init(service?.host ?? platform.label, in: world)
    clock.random = world.fork()
    let hasOnlyHTTP1 = service?.hasOnlyHTTP1 == true
    for place in places.sorted() {
      let accept = try Self.serve(platform, hasOnlyHTTP1: hasOnlyHTTP1, journal, clock) { [unowned self] token in
        step(for: token, at: place)
      }
      world.network.listen(at: place, self, applicationProtocol: hasOnlyHTTP1 ? "http/1.1" : nil) { [unowned self] _ in
        let refusal = refusals.sorted { $0.key < $1.key }.first { $0.value.places?.contains(place) != false }
        return if let refusal { .failure(.init(how: refusal.value.how)) } else { .success(accept()) }
      }
    }
  }

  private static func serve(
    _ platform: Platform, hasOnlyHTTP1: Bool, _ journal: Journal, _ clock: Turn,
    _ decide: @escaping ([UInt8]) -> Step?
  ) throws -> () -> any Machine {
    switch platform {
    case .apns:
      let service = try APNsService(configuration: APNsConfiguration(), journal: journal, time: clock)
      service.decide = decide
      return { service.accept() }
    case .fcm:
      let service = try FCMService(configuration: FCMConfiguration(), journal: journal, time: clock)
      service.decide = decide
      return { service.accept() }
    case .webpush:
      var configuration = WebPushConfiguration()
      configuration.isHTTP1 = hasOnlyHTTP1
      let service = WebPushService(configuration: configuration, journal: journal, time: clock)
      service.decide = decide
      return { service.accept() }
    }
  }

  /// The token of the device that a request is for.
  func device(of entry: JournalEntry) -> String {
    service.map { $0.origin + String(decoding: entry.path, as: UTF8.self) } ?? entry.tokenText
  }

  override var ownDeadline: MonotonicTime { clock.nextTimer }
  override func turnBegins(at now: MonotonicTime) { clock.begin(now: now, wallClock: world.wallClock) }
  override func act(at now: MonotonicTime) { clock.runTimers() }

  private func step(for token: [UInt8], at place: String) -> Step? {
    let isToken = token.elementsEqual("/token".utf8)
    let lacksTopic = platform == .apns && Workload.lacksTopic(String(decoding: token, as: UTF8.self))
    let refusal = Step(status: 400, reason: "TopicDisallowed")
    for (_, fault) in faults.sorted(by: { $0.key < $1.key })
    where fault.isOfTokens == isToken && fault.places?.contains(place) != false {
      guard chance.next() % UInt64(fault.oneIn) == 0 else { continue }
      if case .goAway = fault.step.fault { goAwayTimes.append(world.elapsed) }
      var step = fault.step
      if lacksTopic, step.status == nil { (step.status, step.reason) = (refusal.status, refusal.reason) }
      return step
    }
    return lacksTopic ? refusal : nil
  }

  func goAways(since time: Double) -> Int { goAwayTimes.count { $0 >= time } }

  func suffer(_ fault: Fault, for seconds: Double, _ words: String) {
    let number = begin("\(words), one in \(fault.oneIn), for \(seconds) s")
    faults[number] = fault
    world.schedule(after: seconds) { [self] in
      faults[number] = nil
      world.note("\(name): \(words), over")
      if fault.step.streams != nil { raiseStreams() }
    }
  }

  /// Raises the stream limit of open connections again, unless another fault lowers it.
  private func raiseStreams() {
    guard !faults.values.contains(where: { $0.step.streams != nil }) else { return }
    let sessions = ends.filter { !$0.isOver }.compactMap { $0.driver.machine as? ServerSession }
    for session in sessions { session.setMaxConcurrentStreams(mostStreams) }
    world.note("\(name): \(mostStreams) streams on \(sessions.count) connections")
    wake()
  }

  /// Refuses new connections.
  /// - Parameter places: the affected addresses; nil for all.
  func refuse(_ how: Network.Refusal, at places: Set<String>? = nil, for seconds: Double) {
    let number = begin("takes no connections for \(seconds) s")
    refusals[number] = (how, places)
    world.schedule(after: seconds) { [self] in
      refusals[number] = nil
      world.note("\(name) takes connections again")
    }
  }

  private func begin(_ words: String) -> Int {
    faultCount += 1
    world.note("\(name): \(words)")
    return faultCount
  }
}

extension JournalEntry {
  var isAccepted: Bool { status.map { 200..<300 ~= $0 } ?? false }
  /// The provider says that the device has gone.
  var isGone: Bool { status == 404 || status == 410 }
}
