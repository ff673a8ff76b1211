import Foundation
import Providers
import PushCore
import Reactor
import Settings

/// Tries each credential with a push that reaches no device, several at a time.
final class DoctorProviders: DoctorLook {
  private static let mostAtOnce = 8
  /// Seconds of clock difference that are tolerated, and seconds beyond which providers refuse tokens.
  private static let clockDrift: Int64 = 30
  private static let clockLimit: Int64 = 300

  private var waiting: ArraySlice<CheckedCredential>
  private var running: [String: AnyObject] = [:]

  init(_ credentials: [CheckedCredential]) throws {
    waiting = credentials[...]
    try super.init()
  }

  func look() -> [Finding] {
    guard !waiting.isEmpty else { return [] }
    loop.schedule(after: 0) { [unowned self] in proceed() }
    loop.run()
    return findings.sorted { $0.subject < $1.subject }
  }

  private func proceed() {
    while running.count < Self.mostAtOnce, let credential = waiting.popFirst() { probe(credential) }
    if running.isEmpty, waiting.isEmpty { loop.stop() }
  }

  private func probe(_ credential: CheckedCredential) {
    let name = credential.name
    // An expired certificate is refused in any case, so there is no point in a push.
    if case .apns(let apns) = credential.value, let end = apns.notAfter, hasEnded(end, name) { return }
    let completion: (CredentialProbe.Outcome) -> Void = { [weak self] outcome in
      guard let self else { return }
      judge(outcome, credential)
      // The probe can't be released within its own call.
      loop.schedule(after: 0) { [weak self] in
        self?.running[name] = nil
        self?.proceed()
      }
    }
    do {
      switch credential.value {
      case .apns(let apns):
        running[name] = try CredentialProbe.apns(apns, topic: credential.topic ?? "", loop.time, loop, completion: completion)
      case .fcm(let fcm): running[name] = try CredentialProbe.fcm(fcm, loop.time, loop, completion: completion)
      case .webpush(let webpush):
        let keys = webpush.keys.count == 1 ? "its key is usable" : "its \(webpush.keys.count) keys are usable"
        report(.ok, name, "\(keys); only a push to a browser shows whether push services accept it", nil)
      }
    } catch { report(.error, name, "the key can't sign: \(error)", "replace the key") }
  }

  // MARK: results

  private func judge(_ outcome: CredentialProbe.Outcome, _ credential: CheckedCredential) {
    let name = credential.name
    switch outcome {
    case .unreachable(let reason):
      report(.unreachable, name, "the provider can't be reached: \(reason)", "check the network, `proxy`, `endpoint` and `ca`")
    case .accountRefused(let word):
      report(
        .error, name, "the token endpoint refuses the service account: \(word)",
        "check that its key has not been deleted, and this machine's clock")
    case .answered(let meaning, let clock):
      if let clock { judgeClock(clock, name) }
      judge(meaning, name, credential.topic == nil ? .fcm : .apns)
    }
  }

  private func judge(_ meaning: ReplyMeaning, _ name: String, _ platform: Platform) {
    let words = platform == .fcm ? FCMReply.words(for: meaning) : APNsReply.words(for: meaning)
    // If the provider gives no reason, the reason is `HTTP` and the status.
    let said =
      meaning.reason.hasPrefix("HTTP ")
      ? meaning.reason : "\(meaning.status) \(meaning.reason)".trimmingCharacters(in: .whitespaces)
    let good = platform == .fcm ? "account, project and permission are accepted" : "key, team and topic are accepted"
    let remedy = ProviderRemedy.words(for: meaning, platform)
    switch meaning.reaction {
    case .delivered, .suspect, .gone: report(.ok, name, "\(good) (\(said))", nil)
    case .drop(let code) where code != .invalidAPNsCredential && code != .internalServerError:
      if ProviderRemedy.isKnown(meaning, platform) { return report(.ok, name, "\(good) (\(said))", nil) }
      report(
        .warning, name, "the provider's answer says nothing about the credential: \(said)", "check `endpoint`, and send a push")
    // A worker reacts by fetching a new token; the doctor doesn't.
    case .retry(.refreshedToken, _): report(.error, name, "the provider refuses it: \(said)", remedy)
    case .credential(.unavailable): report(.unreachable, name, "the provider accepts nothing now: \(said): \(words)", remedy)
    case .credential, .drop: report(.error, name, "the provider refuses it: \(said): \(words)", remedy)
    case .retry:
      report(.unreachable, name, "the provider is in trouble: \(said): \(words)", "try again later")
    }
  }

  private func judgeClock(_ clock: Int64, _ name: String) {
    let drift = (loop.wallClock - clock) / 1_000
    guard abs(drift) > Self.clockDrift else { return }
    let words = "this machine's clock is \(abs(drift)) seconds \(drift > 0 ? "ahead of" : "behind") the provider's"
    report(
      abs(drift) > Self.clockLimit ? .error : .warning, name, words,
      "set the clock by NTP: providers refuse tokens with a wrong time")
  }

  private func hasEnded(_ end: Int64, _ name: String) -> Bool {
    guard let mark = ExpiryWatch.mark(notAfter: end, at: loop.wallClock / 1_000) else { return false }
    let date = String(decoding: Timestamp.text(end * 1_000).prefix(10), as: UTF8.self)
    let words = mark == 0 ? "its certificate has ended, on \(date)" : "its certificate ends on \(date)"
    report(mark == 0 ? .error : .warning, name, words, "renew the certificate, or use a key, which doesn't expire")
    return mark == 0
  }
}
