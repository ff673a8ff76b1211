import HTTP2
import PushCore
import Simulator
import Wire

/// A provider: one of the simulators that `pushfleet simulate` serves, and the trouble that it is in.
final class ProviderHouse: Party {
  /// What it does to requests for a while.
  struct Trouble {
    var step: Step
    /// One request in so many.
    var oneIn: Int
    /// The token endpoint's, not the pushes'.
    var isOfTokens = false
  }

  enum Kind { case apns, fcm }

  let kind: Kind
  let journal: Journal
  let address: String
  private let clock: Turn
  private var accept: () -> any Machine = { preconditionFailure("no service") }
  private var troubles: [Int: Trouble] = [:]
  private var troubleCount = 0
  private var chance: RandomSource
  /// New connections are met with this.
  var refusal: Network.Refusal?

  init(_ kind: Kind, at address: String, in world: World) throws {
    self.kind = kind
    self.address = address
    journal = try Journal(keepsEntries: true)
    clock = Turn(now: world.now, wallClock: world.wallClock)
    chance = world.fork()
    super.init(kind == .apns ? "APNs" : "FCM", in: world)
    var ids = world.fork()
    let environment = SimulatorEnvironment(
      wallClock: { [unowned world] in world.wallClock },
      later: { [unowned self] seconds, body in clock.schedule(after: seconds, body) },
      makeUUID: { UUIDText.random(using: &ids) })
    switch kind {
    case .apns:
      let service = try APNsService(configuration: APNsConfiguration(), journal: journal, environment: environment)
      service.decide = { [unowned self] token in step(for: token) }
      accept = { service.accept() }
    case .fcm:
      let service = try FCMService(configuration: FCMConfiguration(), journal: journal, environment: environment)
      service.decide = { [unowned self] token in step(for: token) }
      accept = { service.accept() }
    }
    world.network.listen(at: address, self) { [unowned self] in
      if let refusal { .failure(.init(how: refusal)) } else { .success(accept()) }
    }
  }

  override var ownDeadline: MonotonicTime { clock.nextTimer }
  override func turnBegins(at now: MonotonicTime) { clock.begin(now: now, wallClock: world.wallClock) }
  override func act(at now: MonotonicTime) { clock.runTimers() }

  private func step(for token: [UInt8]) -> Step? {
    let isToken = token.elementsEqual("/token".utf8)
    for (_, trouble) in troubles.sorted(by: { $0.key < $1.key }) where trouble.isOfTokens == isToken {
      if chance.next() % UInt64(trouble.oneIn) == 0 { return trouble.step }
    }
    return nil
  }

  func suffer(_ trouble: Trouble, for seconds: Double, _ words: String) {
    troubleCount += 1
    let number = troubleCount
    troubles[number] = trouble
    world.note("\(name): \(words), one in \(trouble.oneIn), for \(seconds) s")
    world.schedule(after: seconds) { [self] in
      troubles[number] = nil
      world.note("\(name): \(words), over")
    }
  }
}
