import HTTP2
import PushCore
import Wire

/// A refused credential stops the pool; a refused topic stops its application's account. While pushes wait, a ``ProviderProbe``
/// asks once a minute whether the provider accepts it again. A push isn't used to ask: if it were refused for its own content,
/// it would stop all others.
extension ProviderPool {
  /// The provider refused the push in `slot` because of its credential or its account's topic.
  func stop(_ meaning: ReplyMeaning, for slot: Int, _ scope: RefusalScope) {
    let account = slots[slot].account
    let isOfTopic = meaning.connection == .stopTopic
    if let topic = provider.topic(of: slot), topic.ofApplication != nil || accounts[account]?.topic.isEmpty == true {
      accounts[account]?.topic = topic.ofApplication ?? topic.name
    }
    refusedTopic = accounts[account]?.topic ?? []
    stopCredential(
      meaning.reason, meaning.reaction.code ?? .unavailable, topic: isOfTopic ? topic(of: account, slot) : nil,
      topicOf: isOfTopic ? account : nil, yields: scope == .everyPushUntilTaken,
      isCertain: !isOfTopic || scope == .everyPush)
  }

  /// - Parameter topicOf: the account with the refused topic; nil if the credential is refused.
  func stopCredential(
    _ reason: String, _ code: PushError, topic: String? = nil, topicOf account: Int? = nil, yields: Bool = false,
    isCertain: Bool = true
  ) {
    let isNew = isCertain && stop(of: account)?.isCertain != true
    let stop = PoolHealth.Stop(reason, code, yields: yields, isCertain: isCertain, at: time.now)
    if let account {
      guard accounts[account] != nil else { return }
      if accounts[account]?.stop == nil { refusedTopics.append(account) }
      accounts[account]?.stop = stop
      accounts[account]?.canary = nil
    } else {
      health.stopCredential(stop)
      credentialCanary = nil
      connections.replaceAll()
      giveBackResends(.unauthorised)
    }
    if isNew { observed(.credentialStopped(reason: reason, topic: topic, credential: provider.credentialName), of: account) }
    rearm()
  }

  private func stop(of account: Int?) -> PoolHealth.Stop? {
    if let account { accounts[account]?.stop } else { health.stop }
  }

  var topicDeadline: MonotonicTime {
    refusedTopics.reduce(.distantFuture) { next, account in
      guard let stop = accounts[account]?.stop, !stop.isDue else { return next }
      return min(next, stop.askAt)
    }
  }

  func askForTopics(at now: MonotonicTime) {
    for account in refusedTopics {
      if let stop = accounts[account]?.stop, now >= stop.askAt { accounts[account]?.stop?.isDue = true }
      askForTopic(of: account)
    }
  }

  func askForTopic(of account: Int) {
    guard let record = accounts[account], record.stop?.isDue == true, record.canary == nil, record.isStarved, health.stop == nil
    else {
      return
    }
    accounts[account]?.canary = canary(for: account)
  }

  func askForCredential() {
    guard health.stop?.isDue == true, credentialCanary == nil, isWaitingForRoom else { return }
    guard provider.probesCredential else { return tryCredential() }
    credentialCanary = canary(for: nil)
  }

  /// Lets one push through. If it is refused, the credential stops again.
  private func tryCredential() {
    health.resumeCredential()
    health.answersAgain()
    if connections.sendableStreams == 0 { connections.want() }
  }

  private func canary(for account: Int?) -> ProviderProbe? {
    guard !isClosing, !health.isPaused else { return nil }
    var generation = 0
    return ProviderProbe(
      time, connections.dialer, connections.endpoint,
      request: { [weak self] in
        guard let self, let current = provider.authorise() else { return nil }
        generation = current.generation
        return provider.probe(.takesCredential(topic: account.map { accounts[$0]?.topic ?? [] } ?? refusedTopic))
      }, answered: { [weak self] response, _ in self?.credentialAnswered(response, generation, account) ?? true })
  }

  /// - Returns: false if the answer says nothing about the credential or the topic.
  private func credentialAnswered(_ response: Response, _ generation: Int, _ account: Int?) -> Bool {
    guard let stop = stop(of: account) else { return true }
    let meaning = provider.interpret(response, to: nil)
    let isTaken =
      switch meaning.connection {
      case .keep, .replace: response.status != 403
      // The canary asks for the application's own topic. After a refusal of another push type's topic, that means little.
      case .stopTopic: account == nil || !stop.isCertain
      default: false
      }
    if isTaken, response.status >= 500 || response.status == 429 { return false }
    if isTaken {
      trust.took(generation)
      provider.trialSucceeded(with: generation)
      if let account { topicAccepted(account) } else { credentialAccepted() }
    } else if !hasOtherAuthorisation(meaning, after: generation) {
      let topic =
        meaning.connection == .stopTopic
        ? account.map { self.topic(of: $0) } ?? String(decoding: refusedTopic, as: UTF8.self) : nil
      stopCredential(
        meaning.reason, meaning.reaction.code ?? .unavailable, topic: topic, topicOf: account, yields: stop.yields)
    } else {
      return false
    }
    advance()
    rearm()
    return true
  }

  /// The topic of a refusal: that of the push in `slot`, or of the account.
  func topic(of account: Int, _ slot: Int? = nil) -> String {
    String(decoding: slot.flatMap { provider.topic(of: $0)?.name } ?? accounts[account]?.topic ?? [], as: UTF8.self)
  }

  func credentialAccepted() {
    guard health.stop != nil else { return }
    credentialCanary = nil
    health.resumeCredential()
    observed(.credentialAccepted)
    if isWaitingForRoom, connections.sendableStreams == 0 { connections.want() }
  }

  func topicAccepted(_ account: Int) {
    accounts[account]?.hasBeenTaken = true
    guard let stop = accounts[account]?.stop else { return }
    refusedTopics.removeAll { $0 == account }
    accounts[account]?.stop = nil
    accounts[account]?.canary = nil
    if stop.isCertain { observed(.credentialAccepted, of: account) }
    guard accounts[account]?.isStarved == true else { return }
    accounts[account]?.isStarved = false
    handler?.capacityAvailable(in: self)
  }

  /// Clears all refusals of the previous credential.
  func forgetRefusals() {
    health.resumeCredential()
    credentialCanary = nil
    for account in accounts.indices where accounts[account] != nil {
      accounts[account]?.hasBeenTaken = false
      accounts[account]?.stop = nil
      accounts[account]?.canary = nil
      accounts[account]?.isStarved = false
    }
    refusedTopics = []
  }
}
