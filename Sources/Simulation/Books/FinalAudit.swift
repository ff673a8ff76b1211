import DeviceRegistry

/// The books at rest: every device of every accepted request has exactly one outcome.
struct FinalAudit {
  let books: Books
  let store: any DeviceStore
  let world: World
  /// What befell the fleet.
  let afflictions: [Affliction]
  /// Events by which workers may lose what they have in hand.
  let losses: Int
  let calm: Calm
  let troubles: AppTroubles

  /// A device may have got a push, or a request its result, twice.
  private var mayDouble: Bool { afflictions.contains { $0.mayDouble } }
  private var mayDropReplies: Bool { afflictions.contains(where: \.mayDropReplies) }
  /// No device was said to be gone, after which an audience has it no longer.
  private var keepsDevices: Bool { !afflictions.contains(.tokensGone) }

  func run() {
    for id in books.requests.keys.sorted() { if let request = books.requests[id] { check(request) } }
    for id in books.kept.sorted() where books.copies.waiting(of: id) < 1 && !books.givenUp.contains(id) {
      world.fail("\(id) was of a later version, and is gone")
    }
    checkInnocents()
    checkChanges()
    checkProviderTokens()
    checkDuplicates()
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
    case .registered(_, let members): checkAudience(request, members, result)
    }
    if request.wantsReply, !mayDropReplies { checkReplies(request, results) }
    if request.isRefused, books.delivered[request.id] != nil { world.fail("\(request.id) names no sender and was sent") }
    checkPromptness(request)
  }

  /// Nothing here ends a worker: what is given up has been lost once by each of the lanes, and as often as it may be by the quarantine.
  private func checkInnocents() {
    guard losses < 5 else { return }
    for id in books.givenUp.sorted() { world.fail("\(id) was given up after at most \(losses) losses") }
  }

  /// Whoever asked for the result has it, and no other one than those that everybody sees.
  private func checkReplies(_ request: Request, _ results: [SimulatedResult]) {
    let replies = books.replies[request.id] ?? []
    guard let reply = replies.last else { return world.fail("\(request.id) has no reply") }
    if replies.count > 1, !mayDouble { world.fail("\(request.id) has \(replies.count) replies") }
    guard let reply, results.contains(where: { $0.success == reply.success && $0.failure == reply.failure }) else {
      return world.fail("\(request.id): the reply is none of its results")
    }
  }

  /// What is accepted while nothing befalls the fleet, nor has a moment ago, is sent at once.
  private func checkPromptness(_ request: Request) {
    guard case .tokens(let tokens) = request.audience, !request.isRefused, let accepted = books.acceptedAt[request.id] else {
      return
    }
    let time = world.elapsed - Double(world.wallClock - accepted) / 1000
    guard calm.holds(at: time), !troubles.areFelt(at: time, for: Calm.latency) else { return }
    for token in tokens {
      let first = books.delivered[request.id]?[Self.own(token)]?.min() ?? .max
      guard first > accepted + Int64(Calm.latency * 1000) else { continue }
      world.fail("\(request.id): \(token) wasn't sent to within \(Int(Calm.latency)) s of \(time) s, though nothing was amiss")
    }
  }

  /// Each is answered, and the registry is what their order makes of it.
  private func checkChanges() {
    for id in books.changes.accepted.sorted() where books.replies[id] == nil && !mayDropReplies {
      world.fail("\(id) has no answer")
    }
    for order in books.changes.last {
      let app = Array(Scenario.app(order.app).utf8)
      let records = (try? store.device(.token(order.platform, Array(order.token.utf8)), app: app)) ?? []
      let record = records.first { $0.state != .gone }
      let isMember = record?.device.topics.contains(Array(RegistryOrder.topic.utf8)) == true
      let isDone =
        switch order.operation {
        case .register: record != nil
        case .unregister: record == nil
        case .subscribe: isMember
        case .unsubscribe: !isMember
        }
      if !isDone { world.fail("\(order.id), \(order.operation) of device \(order.device), came last and was not what counted") }
    }
  }

  /// Apple wants a key's token renewed no more often than every 20 minutes, whoever has the key. A refused one has its neighbours tried.
  private func checkProviderTokens() {
    let most = 4 + Int(world.elapsed / 1_800)
    for (key, times) in books.providerTokens.sorted(by: { $0.key < $1.key }) {
      let times = times.sorted()
      let isTooOften = zip(times, times.dropFirst()).contains { $1 - $0 < 1_200 }
      if isTooOften || times.count > most { world.fail("provider tokens of key \(key) issued at \(times)") }
    }
  }

  /// None without a cause; and where the broker shows every cause, no more than there were causes.
  private func checkDuplicates() {
    if !mayDouble, books.duplicates > 0 { world.fail("\(books.duplicates) pushes were sent twice without a cause") }
    guard !afflictions.contains(where: \.doublesUnseen) else { return }
    let most = books.copies.mostSends
    for id in books.delivered.keys.sorted() {
      let count = books.delivered[id]?.values.map(\.count).max() ?? 0
      if count > most[id] ?? 1 {
        world.fail("\(id) was sent \(count) times to a device, and \(most[id] ?? 1) copies were given out")
      }
    }
  }

  static func own(_ token: String) -> String { String(token.drop { $0 != ":" }.dropFirst()) }

  private func checkTokens(_ request: Request, _ tokens: [String], _ result: SimulatedResult) {
    guard result.errors.count == tokens.count else {
      // Refused as a whole, or expired before its devices were known.
      if result.failure < 1 { world.fail("\(request.id): \(result.errors.count) outcomes for \(tokens.count) devices") }
      return
    }
    for (token, error) in zip(tokens, result.errors) {
      let count = books.delivered[request.id]?[Self.own(token)]?.count ?? 0
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
    let reached = tokens.count { books.delivered[request.id]?[$0] != nil }
    if result.success > reached { world.fail("\(request.id): \(result.success) are said to be reached, \(reached) were") }
  }
}
