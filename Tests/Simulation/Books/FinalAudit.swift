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
  var mayDouble: Bool { afflictions.contains { $0.mayDouble } }
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
    checkMoves()
    checkAcknowledgements()
    checkProviderTokens()
    checkDuplicates()
  }

  private func check(_ request: Request) {
    let results = books.results[request.id] ?? []
    guard let result = results.last else {
      if !books.givenUp.contains(request.id) { world.fail("\(request.id) has no result") }
      return
    }
    checkCount(of: results, request)
    for result in results {
      switch request.audience {
      case .tokens(let tokens): checkTokens(request, tokens, result, results)
      case .registered(_, let members): checkAudience(request, members, result)
      }
    }
    if request.wantsReply, !mayDropReplies { checkReplies(request, results) }
    if request.isRefused, books.delivered[request.id] != nil { world.fail("\(request.id) is for nobody and was sent") }
    checkPromptness(request, result)
  }

  /// One; where something may double, and the broker shows every cause, as many as copies of the request were given out, and one more for each
  /// that had no confirm.
  private func checkCount(of results: [SimulatedResult], _ request: Request) {
    if results.count > 1, !mayDouble { world.fail("\(request.id) has \(results.count) results") }
    guard results.count > 1, !afflictions.contains(where: \.doublesUnseen) else { return }
    let most = (books.copies.mostSends[request.id] ?? 1) + books.unconfirmedResults(of: request.id)
    if results.count > most { world.fail("\(request.id) has \(results.count) results, and there is cause for \(most)") }
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

  /// What is accepted while nothing befalls the fleet is sent at once, and what has waited for the broker, or is accepted after a GOAWAY, soon;
  /// but for what a newer request has replaced meanwhile, and for what came back twice, which goes by the quarantine.
  private func checkPromptness(_ request: Request, _ result: SimulatedResult) {
    guard case .tokens(let tokens) = request.audience, !request.isRefused, books.copies.returns(of: request.id) < 2,
      let accepted = books.acceptedAt[request.id]
    else { return }
    let time = world.elapsed - Double(world.wallClock - accepted) / 1000
    guard let latest = calm.latest(for: time), !troubles.areFelt(at: time, for: latest - time),
      !isOver(request, at: accepted + Int64((latest - time) * 1000))
    else { return }
    books.timed += 1
    if latest > time + Calm.latency { books.timedAfterTrouble += 1 }
    let seconds = latest - time
    for (index, token) in tokens.enumerated() {
      if result.isCollapsed(index, of: tokens.count) { continue }
      let first = books.delivered[request.id]?[Self.own(token)]?.min() ?? .max
      guard first > accepted + Int64(seconds * 1000) else { continue }
      let when = first == .max ? "not sent to" : "sent to \(Double(first - accepted) / 1000) s after it had been accepted"
      world.fail("\(request.id): \(token) was \(when), at \(time) s, from where on it had \(seconds) s")
    }
  }

  /// Each is answered, and the registry is what their order makes of it.
  private func checkChanges() {
    for id in books.changes.accepted.sorted() where books.replies[id] == nil && !mayDropReplies {
      world.fail("\(id) has no answer")
    }
    for order in books.changes.last {
      let app = Array(Scenario.app(order.app).utf8)
      let reference: DeviceReference =
        order.operation == .move
        ? .installation(Array(order.installation.utf8)) : .token(order.platform, Array(order.token.utf8))
      let records = (try? store.device(reference, app: app)) ?? []
      let record = records.first { $0.state != .gone }
      let isMember = record?.device.topics.contains(Array(RegistryOrder.topic.utf8)) == true
      let isDone =
        switch order.operation {
        case .register: record != nil
        case .unregister: record == nil
        case .move: records.map(\.device.token) == [Array(order.token.utf8)] && record != nil
        case .subscribe: isMember
        case .unsubscribe: !isMember
        }
      if !isDone { world.fail("\(order.id), \(order.operation) of device \(order.device), came last and was not what counted") }
    }
  }

  /// Each token that an installation's newer one has replaced is fed back, whoever was killed meanwhile.
  private func checkMoves() {
    for move in books.changes.expectedMoves.subtracting(books.changes.moves).sorted(by: { $0.newToken < $1.newToken }) {
      world.fail("\(move.token) was replaced by \(move.newToken), and nobody was told")
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

  private func checkTokens(_ request: Request, _ tokens: [String], _ result: SimulatedResult, _ results: [SimulatedResult]) {
    let letters = books.letters[request.id] ?? Letters()
    guard result.errors.count == tokens.count else {
      checkWhole(request, result, letters)
      if result.errors.count != 1 || result.failure != 1 || result.success != 0 {
        world.fail("\(request.id): \(result.errors.count) outcomes for \(tokens.count) devices")
      }
      return
    }
    for (index, token) in tokens.enumerated() {
      let error = result.errors[index]
      let own = Self.own(token)
      let count = books.delivered[request.id]?[own]?.count ?? 0
      guard let error else {
        if count == 0 { world.fail("\(request.id): \(token) is said to be reached and was not") }
        continue
      }
      if count > 0, !mayDouble { world.fail("\(request.id): \(token) was reached, and failed with \(error)") }
      if afflictions.isEmpty, !request.isRefused, error != "Collapsed" {
        world.fail("\(request.id): \(token) failed with \(error), though nothing was amiss")
      }
      // Its letter was refused, and lost with the worker before it went out again: what came back had another end, which is judged as well.
      if afflictions.contains(.confirmsNacked),
        results.contains(where: { $0.errors.count == tokens.count && $0.errors[index] != error })
      {
        continue
      }
      checkFailure(request, token, error, letters)
    }
  }

  private func checkFailure(_ request: Request, _ token: String, _ error: String, _ letters: Letters) {
    switch error {
    case "Collapsed":
      guard !mayBeReplaced(request, token) else { return }
      world.fail("\(request.id): \(token) was left out for a newer request, and there is none")
    case "NotRegistered":
      guard books.saidGone[request.id]?.contains(Self.own(token)) != true else { return }
      world.fail("\(request.id): \(token) is gone, and no feedback says so")
    case "Expired": return
    default:
      guard !letters.names(Self.own(token)) else { return }
      world.fail("\(request.id): \(token) failed with \(error) and is in no dead letter")
    }
  }

  /// Refused as one, expired before its devices were known, or given up.
  private func checkWhole(_ request: Request, _ result: SimulatedResult, _ letters: Letters) {
    guard letters.count == 0, !isOver(request, at: result.at), !books.givenUp.contains(request.id) else { return }
    world.fail("\(request.id) failed as one, in time and with no dead letter")
  }

  /// Whether a worker, whose clock may differ, may find that a request's time is over. What is for now or never ends at any time.
  private func isOver(_ request: Request, at wallClock: Int64) -> Bool {
    request.lifetime == 0 || wallClock >= request.deadline - books.tolerance
  }

  /// Another one to the device has the same key and wasn't published before.
  private func mayBeReplaced(_ request: Request, _ token: String) -> Bool {
    guard let key = request.collapseKey else { return false }
    return books.requests.values.contains { other in
      guard case .tokens(let tokens) = other.audience else { return false }
      return other.id != request.id && other.collapseKey == key && tokens.contains(token)
        && other.publishedAt >= request.publishedAt
    }
  }

  /// Another one to the audience has the same key and wasn't published before.
  private func mayBeReplaced(_ request: Request) -> Bool {
    guard let key = request.collapseKey else { return false }
    return books.requests.values.contains { other in
      other.id != request.id && other.collapseKey == key && other.hasAudience(of: request)
        && other.publishedAt >= request.publishedAt
    }
  }

  private func checkAudience(_ request: Request, _ members: [String], _ result: SimulatedResult) {
    let letters = books.letters[request.id] ?? Letters()
    let reached = members.filter { books.delivered[request.id]?[$0] != nil }
    if result.success > reached.count {
      world.fail("\(request.id): \(result.success) are said to be reached, \(reached.count) were")
    }
    if !mayDouble { checkGone(request) }
    guard keepsDevices else { return }
    if !mayDouble, result.success != reached.count {
      world.fail("\(request.id): \(reached.count) were reached, and \(result.success) are said to be")
    }
    let mayLack = mayBeReplaced(request)
    if afflictions.isEmpty, !request.isRefused, result.success != members.count && !mayLack || letters.count > 0 {
      world.fail(
        "\(request.id): \(result.success) of \(members.count) reached, \(letters.count) letters, though nothing was amiss")
    }
    // A broadcast that came too late, or to an audience that couldn't be had, fails as one.
    if result.failure == 1, result.success == 0, members.count > 1 { return checkWhole(request, result, letters) }
    if result.success + result.failure != members.count {
      world.fail("\(request.id): a result of \(result.success) and \(result.failure) for \(members.count) devices")
    }
    guard letters.ofAll == 0, !mayLack, !isOver(request, at: result.at) else { return }
    for token in members where books.delivered[request.id]?[token] == nil && !letters.names(token) {
      world.fail("\(request.id): \(token) wasn't reached, in time and with no dead letter")
    }
  }

  /// Where a provider has said that a device is gone, feedback says so.
  private func checkGone(_ request: Request) {
    let gone = books.foundGone[request.id] ?? []
    for token in gone.subtracting(books.saidGone[request.id] ?? []).sorted() {
      world.fail("\(request.id): \(token) is gone, and no feedback says so")
    }
  }
}
