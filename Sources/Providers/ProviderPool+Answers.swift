import HTTP2
import PushCore
import Wire

/// Handles the provider's answers and connection events.
extension ProviderPool {
  func answersReady(on connection: PooledConnection) {
    let handler = handler
    answering = connection.number
    connection.heardAt = time.now
    silence.heard(at: time.now)
    while let (slot, response) = connection.session.nextAnswer() { answered(slot, response, on: connection, handler) }
    if isWaitingForRoom { advance() }
  }

  private func answered(
    _ slot: Int, _ response: Response, on connection: PooledConnection, _ handler: (any PoolHandler)?
  ) {
    let meaning = provider.interpret(response, to: slot)
    answerTimes?.record(seconds: time.now.seconds(since: slots[slot].sentAt))
    connection.answers += 1
    paused(health.answered(meaning, at: time.now, using: &time.random))
    switch meaning.connection {
    case .keep, .replace:
      if response.status < 500, response.status != 403 {
        if response.status != 429 { health.hasQuota() }
        accepted(slot, on: connection)
      }
      if meaning.connection == .replace { connections.replace(connection) }
      finish(slot, meaning, response, handler)
    case .keepTokenAndWait:
      if hasOtherAuthorisation(slot, meaning, on: connection) { return sendAgain(slot) }
      raiseAlarm(meaning, of: slot)
      let wait = PoolHealth.stoppedProbeInterval
      paused(health.pause(seconds: wait, reason: meaning.reason, at: time.now, using: &time.random))
      giveBack(slot, .unauthorised)
    case .refreshTokenAndReplace, .refreshToken: reauthorise(slot, meaning, response, on: connection, handler)
    case .stopCredential, .stopTopic, .stopProject: refused(slot, meaning, response, on: connection, handler)
    }
  }

  private func accepted(_ slot: Int, on connection: PooledConnection) {
    let isReplaced = connection.epoch != connections.epoch
    trust.took(isReplaced ? nil : slots[slot].generation)
    if slot == trust.trialSlot, !isReplaced { provider.trialSucceeded(with: slots[slot].generation) }
    if !connection.hasServed || health.stop != nil { served(connection) }
    let account = slots[slot].account
    if accounts[account]?.hasBeenTaken == false || !refusedTopics.isEmpty, !isReplaced { taken(account) }
  }

  private func taken(_ account: Int) {
    if let stop = accounts[account]?.stop, !stop.yields { return }
    topicAccepted(account)
  }

  private func served(_ connection: PooledConnection) {
    connections.served(connection)
    connection.session.limitStreams(to: nil)
    // A push that was in flight when the credential stopped doesn't prove that it is accepted again.
    if connection.epoch == connections.epoch, connection.phase == .open || health.stop?.yields == true { credentialAccepted() }
  }

  private func finish(_ slot: Int, _ meaning: consuming ReplyMeaning, _ response: Response, _ handler: (any PoolHandler)?) {
    if meaning.alarm { raiseAlarm(meaning, of: slot) }
    endTrial(of: slot)
    provider.forget(slot)
    let name = slots[slot].wantsName && meaning.reaction == .delivered ? provider.messageName(in: response) : nil
    handler?.answered(tag: slots.release(slot), meaning: meaning, name: name, from: self)
  }

  private func raiseAlarm(_ meaning: ReplyMeaning, of slot: Int) {
    let account = slots[slot].account
    guard let omitted = accounts[account]?.alarms.admit(meaning.reason, at: time.now) else { return }
    let topic = meaning.connection == .stopTopic ? " (the topic is \(topic(of: account, slot)))" : ""
    observed(.alarm(reason: meaning.reason, advice: provider.words(for: meaning) + topic, count: omitted + 1), of: account)
  }

  // MARK: Refusals of the authorisation

  /// The token was refused. Sends the push again once with a new token. If the provider accepts the authorisation for other
  /// pushes, only this push waits. If it was never accepted, a second push's refusal stops the credential.
  private func reauthorise(
    _ slot: Int, _ meaning: ReplyMeaning, _ response: Response, on connection: PooledConnection, _ handler: (any PoolHandler)?
  ) {
    // A credential replaced meanwhile has its own authorisation.
    let isReplaced = connection.epoch != connections.epoch
    let generation = slots[slot].generation
    let isRenewed =
      !slots[slot].wasReauthorised
      && (isReplaced || hasOtherAuthorisation(meaning, after: generation, isTrusted: trust.isTrusted(generation)))
    if isRenewed {
      if meaning.connection == .refreshTokenAndReplace { connections.replace(connection) }
      slots[slot].wasReauthorised = true
      guard !isReplaced else { return sendAgain(slot) }
      trust.renewed()
      if provider.authorise()?.generation == generation { unauthorised.append(slot) } else { sendAgain(slot) }
    } else if health.stop == nil, trust.blamesPush(generation, isAboutToken: isAboutToken(meaning)) {
      trust.refused()
      raiseAlarm(meaning, of: slot)
      finish(slot, meaning, response, handler)
    } else {
      refuse(slot, meaning, response, on: connection)
    }
  }

  /// The refusal may mean that the device belongs to another credential. A provider's own tokens of one key are all alike.
  private func isAboutToken(_ meaning: ReplyMeaning) -> Bool {
    meaning.reaction.isFeedback || trust.hasBeenTaken && !provider.probesCredential
  }

  /// The provider refuses the credential or topic, or only this push if it accepts others.
  private func refused(
    _ slot: Int, _ meaning: ReplyMeaning, _ response: Response, on connection: PooledConnection, _ handler: (any PoolHandler)?
  ) {
    let scope = scope(of: meaning, slot)
    let isOfTopic = meaning.connection == .stopTopic
    let isAlone = scope == .thisPush || scope == .everyPushUntilTaken && !isOfTopic && trust.isTakenFromOthers
    guard isAlone else {
      guard hasOtherAuthorisation(slot, meaning, on: connection) else {
        return refuse(slot, meaning, response, on: connection, scope)
      }
      connections.replace(connection)
      if slots[slot].wasReauthorised { return giveBack(slot, .unauthorised) }
      slots[slot].wasReauthorised = true
      return sendAgain(slot)
    }
    if scope == .everyPushUntilTaken { trust.refused() }
    finish(slot, meaning, response, handler)
  }

  /// The pushes that the refusal of the push in `slot` concerns.
  private func scope(of meaning: ReplyMeaning, _ slot: Int) -> RefusalScope {
    if meaning.connection == .stopProject { return .everyPushUntilTaken }
    guard meaning.connection == .stopTopic, let scope = provider.topic(of: slot)?.scope else { return .everyPush }
    let isTaken = accounts[slots[slot].account]?.hasBeenTaken == true
    return scope == .everyPushUntilTaken && isTaken ? .thisPush : scope
  }

  /// True if the push's authorisation has been replaced, or is replaced now by an accepted one or one to try.
  private func hasOtherAuthorisation(_ slot: Int, _ meaning: ReplyMeaning, on connection: PooledConnection) -> Bool {
    connection.epoch != connections.epoch || hasOtherAuthorisation(meaning, after: slots[slot].generation)
  }

  /// True if there is, or will be, another authorisation than the refused `generation`.
  func hasOtherAuthorisation(_ meaning: ReplyMeaning, after generation: Int, isTrusted: Bool = false) -> Bool {
    let refusal: Authorisation.Refusal
    switch meaning.connection {
    case .refreshToken, .refreshTokenAndReplace: refusal = .expired
    case .stopCredential: refusal = .invalid
    case .keepTokenAndWait: refusal = .tooMany
    case .keep, .replace, .stopTopic, .stopProject: return false
    }
    return provider.replaceAuthorisation(generation, refusal, isTrusted: isTrusted)
  }

  /// Stops sending until the provider accepts the credential or topic. The push counts as not sent.
  private func refuse(
    _ slot: Int, _ meaning: ReplyMeaning, _ response: Response, on connection: PooledConnection,
    _ scope: RefusalScope = .everyPush
  ) {
    // A push that was in flight when the credential or topic stopped tells nothing new.
    let topicStop = accounts[slots[slot].account]?.stop
    let isNews =
      meaning.connection == .stopTopic
      ? topicStop.map { !$0.isCertain && scope == .everyPush } ?? true : health.stop == nil || connection.phase == .open
    if isNews {
      if let offset = clockOffset(in: response), abs(offset) > 60 { observed(.clockOff(seconds: offset)) }
      stop(meaning, for: slot, scope)
    }
    giveBack(slot, .unauthorised)
  }

  /// Seconds by which the provider's clock is ahead of ours, if the answer has a date.
  private func clockOffset(in response: Response) -> Int? {
    guard let field = response.header(Self.date), let date = HTTPDate.seconds(field.prefix(40)) else { return nil }
    return Int(date - time.wallClock / 1000)
  }

  // MARK: Connections

  func failed(_ slot: Int, _ failure: RequestFailure, on connection: PooledConnection) {
    connection.heardAt = time.now
    answering = connection.number
    switch failure {
    case .notProcessed:
      slots[slot].refusals += 1
      if slots[slot].refusals >= Self.refusalLimit { giveBack(slot, .refused) } else { sendAgain(slot) }
    case .unknown(let why):
      // Overlooked pushes were counted as failures before.
      if why == .timedOut, !slots[slot].isOverlooked {
        if silence.heardAt <= slots[slot].sentAt { silence.timedOutAt = time.now }
        paused(health.timedOut(at: time.now, using: &time.random))
      }
      endTrial(of: slot)
      provider.forget(slot)
      handler?.unknown(tag: slots.release(slot), reason: Self.words(for: why), from: self)
    }
    if isWaitingForRoom { advance() }
  }

  private static func words(for why: RequestFailure.Unknown) -> String {
    switch why {
    case .connectionLost: "connection lost before the answer"
    case .reset(let code): "stream reset by the provider: \(code)"
    case .timedOut: "no answer in time"
    }
  }

  func streamsAvailable() { advance() }

  func connectionOpened(_ connection: PooledConnection) {
    if connections.endpoint.probesFirst || health.stop != nil { connection.session.limitStreams(to: 1) }
    if health.connected() { outageEnded() }
    advance()
    rearm()
  }

  /// There is no connection, and none is being made.
  /// - Parameter isAskedAgain: false if the pool connects again by itself.
  func unreachable(isAskedAgain: Bool) {
    health.lostProvider()
    if isAskedAgain { isStarved = false }
    giveBackResends(.unreachable)
    rearm()
  }

  func setClosed() { isClosed = true }

  /// - Parameter account: nil if the event concerns all.
  func observed(_ event: PoolEvent, of account: Int? = nil) {
    observer?.observed(event, of: account.flatMap { accounts[$0]?.name } ?? name, from: self)
  }
}
