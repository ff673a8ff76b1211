import PushCore

/// The longest that was waited for, in seconds.
public struct Delays: Sendable {
  /// By a push of an application that was not in trouble while others were.
  public private(set) var beside = 0.0
  /// By the first push of an application after its trouble, by kind.
  public private(set) var after: [Affliction: Double] = [:]

  public init() {}

  mutating func noteBeside(_ seconds: Double) { beside = max(beside, seconds) }
  mutating func note(after kind: Affliction, _ seconds: Double) { after[kind] = max(after[kind] ?? 0, seconds) }

  public mutating func merge(_ other: Delays) {
    noteBeside(other.beside)
    for (kind, seconds) in other.after { note(after: kind, seconds) }
  }
}

/// Applications beside each other: one in trouble is felt by no other one, loses nothing, and goes on when its trouble is over.
struct AppAudit {
  let books: Books
  let world: World
  let calm: Calm
  let troubles: AppTroubles
  private(set) var delays = Delays()

  /// Seconds within which a push of an application that is not in trouble is sent while others are.
  static let isolation = 2.0

  init(_ audit: FinalAudit) {
    books = audit.books
    world = audit.world
    calm = audit.calm
    troubles = audit.troubles
  }

  mutating func run(isAlone: Bool) {
    guard !troubles.all.isEmpty else { return }
    for id in books.requests.keys.sorted() {
      guard let request = books.requests[id], case .tokens(let tokens) = request.audience, !request.isRefused else { continue }
      checkNeighbour(request, tokens)
      if isAlone, tokens.count == 1 { checkFate(request, tokens[0]) }
    }
    for back in troubles.returns { check(back) }
  }

  private func elapsed(at wallClock: Int64) -> Double { world.elapsed - Double(world.wallClock - wallClock) / 1000 }

  private mutating func checkNeighbour(_ request: Request, _ tokens: [String]) {
    guard let accepted = books.acceptedAt[request.id] else { return }
    let time = elapsed(at: accepted)
    guard calm.holds(at: time, for: Self.isolation), troubles.areFelt(at: time, for: Self.isolation),
      !troubles.areFelt(by: request.app, at: time, for: Self.isolation)
    else { return }
    let result = books.results[request.id]?.last
    for (index, token) in tokens.enumerated() {
      var first = books.delivered[request.id]?[FinalAudit.own(token)]?.min() ?? .max
      // What a newer one has replaced while it waited behind a burst has its outcome instead.
      if let result, result.isCollapsed(index, of: tokens.count) { first = min(first, result.at) }
      let delay = first == .max ? .infinity : Double(first - accepted) / 1000
      delays.noteBeside(delay)
      if delay > Self.isolation {
        world.fail("\(request.id): \(token) was sent \(delay) s after \(time) s, while only other applications were in trouble")
      }
    }
  }

  /// What fails has been tried as often as it may be, or its time is over.
  private func checkFate(_ request: Request, _ token: String) {
    guard request.lifetime != 0, let result = books.results[request.id]?.last, let error = result.errors.first ?? nil else {
      return
    }
    if error == "Expired" {
      if result.at < request.deadline - 1_000 { world.fail("\(request.id) expired before its time") }
      return
    }
    if error == "Collapsed" { return }
    // What lives for minutes ends when its next attempt would come too late.
    let attempts = books.attempts[request.id]?[FinalAudit.own(token)] ?? 0
    let least = request.lifetime == nil && !troubles.all.contains { $0.kind == .appForbidden } ? Scenario.attempts : 1
    if attempts < least { world.fail("\(request.id) failed with \(error) after \(attempts) attempts") }
  }

  private mutating func check(_ back: AppTroubles.Return) {
    guard calm.holds(at: back.at, for: back.recovery), !troubles.hasTrouble(back.app, after: back.at, for: back.recovery)
    else { return }
    let times = back.platforms.flatMap { books.deliveries[AppRoute(app: back.app, platform: $0)] ?? [] }
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
    audit.run(isAlone: afflictions.allSatisfy(\.isOfApps))
    return audit.delays
  }
}
