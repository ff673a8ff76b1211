import HTTP2
import PushCore

/// A credential that the provider refuses stops the pool. A ``Canary`` asks whether it is taken again, once a minute while something waits: a push could
/// be refused for what it wants itself, and would stop all others for as long as it is there.
extension ProviderPool {
  final func stopCredential(_ meaning: ReplyMeaning, for slot: Int?, _ scope: RefusalScope) {
    if let slot { noteRefused(slot) }
    stopCredential(
      meaning.reason, meaning.reaction.code ?? .unavailable, advice(meaning, for: slot), yields: scope == .everyPushUntilTaken,
      isOfTopic: meaning.connection == .stopTopic,
      isCertain: slot == nil || meaning.connection != .stopTopic || scope == .everyPush)
  }

  final func stopCredential(
    _ reason: String, _ code: PushError, _ advice: String, yields: Bool = false, isOfTopic: Bool = false, isCertain: Bool = true
  ) {
    credentialCanary = nil
    let isNew = health.stopCredential(reason, code, yields: yields, isOfTopic: isOfTopic, isCertain: isCertain, at: time.now)
    connections.replaceAll()
    if isNew { observed(.credentialStopped(reason: reason, advice: advice, credential: credentialName)) }
    giveBackResends(.unauthorised)
    rearm()
  }

  final func askForCredential() {
    guard health.stop?.isDue == true, credentialCanary == nil, isWaitingForRoom, !isClosing, !health.isPaused else { return }
    var generation = 0
    credentialCanary = Canary(
      time, dialer, connections.target,
      request: { [weak self] in
        guard let self, let current = authorise() else { return nil }
        generation = current
        return credentialRequest()
      }, answered: { [weak self] response, _ in self?.credentialAnswered(response, generation) ?? true })
  }

  /// - Returns: false where the answer says nothing of the credential.
  private func credentialAnswered(_ response: Response, _ generation: Int) -> Bool {
    guard let stop = health.stop else { return true }
    let meaning = interpret(response)
    let isTaken =
      switch meaning.connection {
      case .keep, .replace: response.status != 403
      case .stopTopic: !stop.isOfTopic
      default: false
      }
    if isTaken, response.status >= 500 || response.status == 429 { return false }
    if isTaken {
      trust.took(generation)
      trialSucceeded(with: generation)
      credentialAccepted()
    } else if !hasOtherAuthorisation(meaning, after: generation) {
      stopCredential(meaning, for: nil, stop.yields ? .everyPushUntilTaken : .everyPush)
    } else {
      return false
    }
    advance()
    rearm()
    return true
  }

  /// Another authorisation is there to ask with, or comes.
  private func hasOtherAuthorisation(_ meaning: ReplyMeaning, after generation: Int) -> Bool {
    switch meaning.connection {
    case .refreshToken, .refreshTokenAndReplace: renewAuthorisation(after: generation, isTrusted: false)
    case .stopCredential: replaceAuthorisation(after: generation, isTooMany: false)
    case .keepTokenAndWait: replaceAuthorisation(after: generation, isTooMany: true)
    case .keep, .replace, .stopTopic, .stopProject: false
    }
  }

  final func credentialAccepted() {
    guard let stop = health.stop else { return }
    credentialCanary = nil
    health.resumeCredential()
    if stop.isCertain { observed(.credentialAccepted) }
    if isWaitingForRoom, connections.sendableStreams == 0 { connections.want() }
  }
}
