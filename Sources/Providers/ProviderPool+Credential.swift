import HTTP2
import PushCore
import Wire

/// A credential that the provider refuses stops the pool; an application's topic that it refuses stops that application's account. A ``Canary`` asks
/// whether it is taken again, once a minute while something waits: a push could be refused for what it wants itself, and would stop all others for as
/// long as it is there.
extension ProviderPool {
  /// The provider has refused the push in `slot` for its credential, or for the topic of its account.
  func stop(_ meaning: ReplyMeaning, for slot: Int, _ scope: RefusalScope) {
    let account = slots[slot].account
    let isOfTopic = meaning.connection == .stopTopic
    refusedAccount = account
    if let topic = provider.topic(of: slot), topic.ofApplication != nil || accounts[account]?.topic.isEmpty == true {
      accounts[account]?.topic = topic.ofApplication ?? topic.name
    }
    stopCredential(
      meaning.reason, meaning.reaction.code ?? .unavailable, topic: isOfTopic ? topic(of: account, slot) : nil,
      topicOf: isOfTopic ? account : nil, yields: scope == .everyPushUntilTaken,
      isCertain: !isOfTopic || scope == .everyPush)
  }

  /// - Parameter topicOf: the account whose topic it is; nil where it is the credential.
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

  /// When the provider is asked for a refused topic next.
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
    credentialCanary = canary(for: nil)
  }

  private func canary(for account: Int?) -> Canary? {
    guard !isClosing, !health.isPaused else { return nil }
    var generation = 0
    return Canary(
      time, connections.dialer, connections.endpoint.target,
      request: { [weak self] in
        guard let self, let current = provider.authorise() else { return nil }
        generation = current.generation
        return provider.probe(.takesCredential(topic: accounts[account ?? refusedAccount]?.topic ?? []))
      }, answered: { [weak self] response, _ in self?.credentialAnswered(response, generation, account) ?? true })
  }

  /// - Returns: false where the answer says nothing of the credential or the topic.
  private func credentialAnswered(_ response: Response, _ generation: Int, _ account: Int?) -> Bool {
    guard let stop = stop(of: account) else { return true }
    let meaning = provider.interpret(response)
    let isTaken =
      switch meaning.connection {
      case .keep, .replace: response.status != 403
      // A push of another type asked: that the application's own topic is refused says nothing of the others.
      case .stopTopic: account == nil || !stop.isCertain
      default: false
      }
    if isTaken, response.status >= 500 || response.status == 429 { return false }
    if isTaken {
      trust.took(generation)
      provider.trialSucceeded(with: generation)
      if let account { topicAccepted(account) } else { credentialAccepted() }
    } else if !hasOtherAuthorisation(meaning, after: generation) {
      let topic = meaning.connection == .stopTopic ? topic(of: account ?? refusedAccount) : nil
      stopCredential(
        meaning.reason, meaning.reaction.code ?? .unavailable, topic: topic, topicOf: account, yields: stop.yields)
    } else {
      return false
    }
    advance()
    rearm()
    return true
  }

  /// The topic that a refusal concerns: of the push in `slot`, or else of the account.
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

  /// The provider has taken a push of the account, or would take one.
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

  /// There is another credential.
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
