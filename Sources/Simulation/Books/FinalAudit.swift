import BrokerModel

/// The books at rest: every device of every accepted request has exactly one outcome.
struct FinalAudit {
  let books: Books
  let broker: VirtualBroker
  let world: World
  /// Devices of each application's topic, by token.
  let members: [[String]]
  /// What befell the fleet.
  let afflictions: [Affliction]
  /// How often a worker's process was started.
  let workerStarts: Int

  /// A device may have got a push, or a request its result, twice.
  private var mayDouble: Bool { afflictions.contains { $0.mayDouble } }
  /// No device was said to be gone, after which a topic has it no longer.
  private var keepsDevices: Bool { !afflictions.contains(.tokensGone) }
  /// No worker's clock was set.
  private var isClockSteady: Bool { !afflictions.contains(.workerSkewed) }

  func run() {
    for queue in broker.queueNames where Books.isWork(queue) || queue == "push.registry" {
      guard let depth = broker.depth(of: queue), !depth.isEmpty else { continue }
      world.fail("\(queue) is not empty at rest: \(depth)")
    }
    for id in books.requests.keys.sorted() { if let request = books.requests[id] { check(request) } }
    checkProviderTokens()
    if !mayDouble, books.duplicates > 0 { world.fail("\(books.duplicates) pushes were sent twice without a cause") }
  }

  private func check(_ request: Request) {
    let results = books.results[request.id] ?? []
    guard let result = results.last else {
      if !books.givenUp.contains(request.id) { world.fail("\(request.id) has no result") }
      return
    }
    if results.count > 1, !mayDouble { world.fail("\(request.id) has \(results.count) results") }
    switch request.audience {
    case .tokens(let tokens): checkTokens(request, tokens, result)
    case .everybody: checkAudience(request, members[request.app], result)
    }
  }

  /// Apple wants a key's token renewed no more often than every 20 minutes: one for each process in that time.
  private func checkProviderTokens() {
    guard isClockSteady else { return }
    let most = workerStarts * (1 + Int(world.elapsed / 1_200))
    for (key, times) in books.providerTokens.sorted(by: { $0.key < $1.key }) where times.count > most {
      world.fail("\(times.count) provider tokens of key \(key) for \(workerStarts) starts of workers")
    }
  }

  private func checkTokens(_ request: Request, _ tokens: [String], _ result: SimulatedResult) {
    guard result.errors.count == tokens.count else {
      // Refused as a whole, or expired before its devices were known.
      if result.failure < 1 { world.fail("\(request.id): \(result.errors.count) outcomes for \(tokens.count) devices") }
      return
    }
    for (token, error) in zip(tokens, result.errors) {
      let own = String(token.drop { $0 != ":" }.dropFirst())
      let count = books.delivered[request.id]?[own] ?? 0
      switch error {
      case nil where count == 0: world.fail("\(request.id): \(token) is said to be reached and was not")
      case let error? where !Self.endsSilently.contains(error) && (books.letters[request.id] ?? 0) == 0:
        world.fail("\(request.id): \(token) failed with \(error) and is in no dead letter")
      default: continue
      }
    }
  }

  /// Reported in the result, or in a feedback queue, alone.
  private static let endsSilently: Set<String> = ["Expired", "NotRegistered"]

  private func checkAudience(_ request: Request, _ tokens: [String], _ result: SimulatedResult) {
    // A broadcast that came too late, or to an audience that couldn't be had, fails as one.
    let isWhole = result.failure == 1 && result.success == 0
    if keepsDevices, !isWhole, result.success + result.failure != tokens.count {
      world.fail("\(request.id): a result of \(result.success) and \(result.failure) for \(tokens.count) devices")
    }
    let reached = tokens.count { (books.delivered[request.id]?[$0] ?? 0) > 0 }
    if result.success > reached { world.fail("\(request.id): \(result.success) are said to be reached, \(reached) were") }
  }
}
