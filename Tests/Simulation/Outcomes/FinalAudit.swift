import DeviceRegistry

/// Checks the records at the end: every device of every accepted request has exactly one outcome.
struct FinalAudit {
  let recorder: OutcomeRecorder
  let store: DeviceStore
  let world: World
  /// The faults of the run.
  let faultKinds: [FaultKind]
  /// Number of events in which workers may lose unacknowledged requests.
  let losses: Int
  let faultFreeTimes: FaultFreeTimes
  let faults: AppFaults

  /// True if pushes and results may occur twice.
  var mayDouble: Bool { faultKinds.contains { $0.mayDouble } }
  private var mayDropReplies: Bool { faultKinds.contains(where: \.mayDropReplies) }
  /// True if no device was reported as gone, which removes it from audiences.
  private var keepsDevices: Bool { !faultKinds.contains(.tokensGone) }

  func run() {
    for id in recorder.requests.keys.sorted() { if let request = recorder.requests[id] { check(request) } }
    for id in recorder.kept.sorted() where recorder.copies.waiting(of: id) < 1 && !recorder.givenUp.contains(id) {
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
    let results = recorder.results[request.id] ?? []
    guard let result = results.last else {
      if !recorder.givenUp.contains(request.id) { world.fail("\(request.id) has no result") }
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
    if request.isRefused, recorder.delivered[request.id] != nil { world.fail("\(request.id) is for nobody and was sent") }
    checkPromptness(request, result)
  }

  /// One result. If repeats are possible and the broker shows every cause: at most the delivered copies plus the unconfirmed
  /// results.
  private func checkCount(of results: [SimulatedResult], _ request: Request) {
    if results.count > 1, !mayDouble { world.fail("\(request.id) has \(results.count) results") }
    guard results.count > 1, !faultKinds.contains(where: \.doublesUnseen) else { return }
    let most = (recorder.copies.mostSends[request.id] ?? 1) + recorder.unconfirmedResults(of: request.id)
    if results.count > most { world.fail("\(request.id) has \(results.count) results, and there is cause for \(most)") }
  }

  /// No request here crashes a worker. So a request may be given up only after one loss in each lane and all allowed losses in
  /// quarantine.
  private func checkInnocents() {
    guard losses < 5 else { return }
    for id in recorder.givenUp.sorted() { world.fail("\(id) was given up after at most \(losses) losses") }
  }

  /// A request with `replyTo` gets a reply that equals one of the public results.
  private func checkReplies(_ request: Request, _ results: [SimulatedResult]) {
    let replies = recorder.replies[request.id] ?? []
    guard let reply = replies.last else { return world.fail("\(request.id) has no reply") }
    if replies.count > 1, !mayDouble { world.fail("\(request.id) has \(replies.count) replies") }
    guard let reply, results.contains(where: { $0.success == reply.success && $0.failure == reply.failure }) else {
      return world.fail("\(request.id): the reply is none of its results")
    }
  }

  /// Without faults, a request is sent at once. After broker faults or GOAWAYs, it is sent soon. Exceptions: it was replaced by
  /// a newer request, or returned twice and quarantined.
  private func checkPromptness(_ request: Request, _ result: SimulatedResult) {
    guard case .tokens(let tokens) = request.audience, !request.isRefused, recorder.copies.returns(of: request.id) < 2,
      let accepted = recorder.acceptedAt[request.id]
    else { return }
    let time = world.elapsed - Double(world.wallClock - accepted) / 1000
    guard let latest = faultFreeTimes.latest(for: time), !faults.areFelt(at: time, for: latest - time),
      !isOver(request, at: accepted + Int64((latest - time) * 1000))
    else { return }
    recorder.timed += 1
    if latest > time + FaultFreeTimes.latency { recorder.timedAfterFault += 1 }
    let seconds = latest - time
    for (index, token) in tokens.enumerated() {
      if result.isCollapsed(index, of: tokens.count) || faults.areFelt(by: Self.own(token), at: time, for: seconds) { continue }
      let first = recorder.delivered[request.id]?[Self.own(token)]?.min() ?? .max
      guard first > accepted + Int64(seconds * 1000) else { continue }
      let when = first == .max ? "not sent to" : "sent to \(Double(first - accepted) / 1000) s after it had been accepted"
      world.fail("\(request.id): \(token) was \(when), at \(time) s, from where on it had \(seconds) s")
    }
  }

  /// Each change is answered, and the registry reflects the changes in their order.
  private func checkChanges() {
    for id in recorder.changes.accepted.sorted() where recorder.replies[id] == nil && !mayDropReplies {
      world.fail("\(id) has no answer")
    }
    for order in recorder.changes.last {
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
        case .move: records.map { Workload.shown($0.device.token, order.platform) } == [order.token] && record != nil
        case .subscribe: isMember
        case .unsubscribe: !isMember
        }
      if !isDone { world.fail("\(order.id), \(order.operation) of device \(order.device), came last and was not what counted") }
    }
  }

  /// Feedback reports each token that a newer token of the installation has replaced, whichever workers were killed.
  private func checkMoves() {
    for move in recorder.changes.expectedMoves.subtracting(recorder.changes.moves).sorted(by: { $0.newToken < $1.newToken }) {
      world.fail("\(move.token) was replaced by \(move.newToken), and nobody was told")
    }
  }

  /// A key's token is renewed at most every 20 minutes, for all workers together. After a refusal, the neighbouring tokens are
  /// tried.
  private func checkProviderTokens() {
    let most = 4 + Int(world.elapsed / 1_800)
    for (key, times) in recorder.providerTokens.sorted(by: { $0.key < $1.key }) {
      let times = times.sorted()
      let isTooOften = zip(times, times.dropFirst()).contains { $1 - $0 < 1_200 }
      if isTooOften || times.count > most { world.fail("provider tokens of key \(key) issued at \(times)") }
    }
  }

  /// Without a cause, nothing is sent twice. If the broker shows every cause, there are no more repeats than causes.
  private func checkDuplicates() {
    if !mayDouble, recorder.duplicates > 0 { world.fail("\(recorder.duplicates) pushes were sent twice without a cause") }
    guard !faultKinds.contains(where: \.doublesUnseen) else { return }
    let most = recorder.copies.mostSends
    for id in recorder.delivered.keys.sorted() {
      let count = recorder.delivered[id]?.values.map(\.count).max() ?? 0
      if count > most[id] ?? 1 {
        world.fail("\(id) was sent \(count) times to a device, and \(most[id] ?? 1) copies were given out")
      }
    }
  }

  static func own(_ token: String) -> String { String(token.drop { $0 != ":" }.dropFirst()) }

  private func checkTokens(_ request: Request, _ tokens: [String], _ result: SimulatedResult, _ results: [SimulatedResult]) {
    let letters = recorder.letters[request.id] ?? Letters()
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
      let count = recorder.delivered[request.id]?[own]?.count ?? 0
      guard let error else {
        if count == 0 { world.fail("\(request.id): \(token) is said to be reached and was not") }
        continue
      }
      if count > 0, !mayDouble { world.fail("\(request.id): \(token) was reached, and failed with \(error)") }
      if faultKinds.isEmpty, !request.isRefused, error != "Collapsed" {
        world.fail("\(request.id): \(token) failed with \(error), though nothing was amiss")
      }
      // Its dead letter was refused and lost with the worker before a repeat. The redelivered request had another outcome,
      // which is checked too.
      if faultKinds.contains(.confirmsNacked),
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
      guard recorder.saidGone[request.id]?.contains(Self.own(token)) != true else { return }
      world.fail("\(request.id): \(token) is gone, and no feedback says so")
    case "Expired": return
    default:
      guard !letters.names(Self.own(token)) else { return }
      world.fail("\(request.id): \(token) failed with \(error) and is in no dead letter")
    }
  }

  /// The whole request failed: it was refused, expired before its devices were known, or given up.
  private func checkWhole(_ request: Request, _ result: SimulatedResult, _ letters: Letters) {
    guard letters.count == 0, !isOver(request, at: result.at), !recorder.givenUp.contains(request.id) else { return }
    world.fail("\(request.id) failed as one, in time and with no dead letter")
  }

  /// True if a worker, whose clock may differ, may find the request expired. A lifetime of 0 may end at any time.
  private func isOver(_ request: Request, at wallClock: Int64) -> Bool {
    request.lifetime == 0 || wallClock >= request.deadline - recorder.tolerance
  }

  /// True if another request to the device has the same key and wasn't published earlier.
  private func mayBeReplaced(_ request: Request, _ token: String) -> Bool {
    guard let key = request.collapseKey else { return false }
    return recorder.requests.values.contains { other in
      guard case .tokens(let tokens) = other.audience else { return false }
      return other.id != request.id && other.collapseKey == key && tokens.contains(token)
        && other.publishedAt >= request.publishedAt
    }
  }

  /// True if another request to the audience has the same key and wasn't published earlier.
  private func mayBeReplaced(_ request: Request) -> Bool {
    guard let key = request.collapseKey else { return false }
    return recorder.requests.values.contains { other in
      other.id != request.id && other.collapseKey == key && other.hasAudience(of: request)
        && other.publishedAt >= request.publishedAt
    }
  }

  private func checkAudience(_ request: Request, _ members: [String], _ result: SimulatedResult) {
    let letters = recorder.letters[request.id] ?? Letters()
    let reached = members.filter { recorder.delivered[request.id]?[$0] != nil }
    if result.success > reached.count {
      world.fail("\(request.id): \(result.success) are said to be reached, \(reached.count) were")
    }
    if !mayDouble { checkGone(request) }
    guard keepsDevices else { return }
    if !mayDouble, result.success != reached.count {
      world.fail("\(request.id): \(reached.count) were reached, and \(result.success) are said to be")
    }
    let mayLack = mayBeReplaced(request)
    if faultKinds.isEmpty, !request.isRefused, result.success != members.count && !mayLack || letters.count > 0 {
      world.fail(
        "\(request.id): \(result.success) of \(members.count) reached, \(letters.count) letters, though nothing was amiss")
    }
    // A broadcast that was too late, or whose audience couldn't be read, fails as a whole.
    if result.failure == 1, result.success == 0, members.count > 1 { return checkWhole(request, result, letters) }
    if result.success + result.failure != members.count {
      world.fail("\(request.id): a result of \(result.success) and \(result.failure) for \(members.count) devices")
    }
    guard letters.ofAll == 0, !mayLack, !isOver(request, at: result.at) else { return }
    for token in members where recorder.delivered[request.id]?[token] == nil && !letters.names(token) {
      world.fail("\(request.id): \(token) wasn't reached, in time and with no dead letter")
    }
  }

  /// Feedback reports each device that a provider reported as gone.
  private func checkGone(_ request: Request) {
    let gone = recorder.foundGone[request.id] ?? []
    for token in gone.subtracting(recorder.saidGone[request.id] ?? []).sorted() {
      world.fail("\(request.id): \(token) is gone, and no feedback says so")
    }
  }
}
