/// What to do about a provider that takes no pushes by a credential: the settings that may be wrong, and where the documents go on. The log,
/// `pushfleet status`, the page and the doctor say it in the same words.
public struct ProviderRemedy: Sendable, Equatable {
  public let words: String
  public let section: String

  /// Of a pool that is in trouble.
  /// - Parameter reason: the provider's word, or why it can't be reached.
  public static func of(_ reason: String, isCredentialRefused: Bool) -> ProviderRemedy {
    let known = apns[reason] ?? fcm[reason]
    guard isCredentialRefused || known != nil else {
      return ProviderRemedy(
        words:
          "for errors of connections and TLS, check the network, `endpoint` and `ca`; otherwise wait: requests come back by themselves",
        section: "docs/runbook.md#pushfleetproviderintrouble")
    }
    return ProviderRemedy(words: known ?? credential, section: "docs/runbook.md#pushfleetcredentialrefused")
  }

  private static let credential = "check the credential's settings with `pushfleet doctor`; the key may be revoked"

  /// By the provider's word.
  private static let apns: [String: String] = {
    let topic = "check `topic`: the bundle id that the key or certificate is for"
    let environment = "check `environment`: the key or certificate is for the other one"
    return [
      "TopicDisallowed": topic, "BadTopic": topic,
      "BadEnvironmentKeyInToken": environment, "BadEnvironmentKeyIdInToken": environment,
      "BadCertificateEnvironment": environment,
      "BadCertificate": "renew `certificate`, or use a key",
      "MissingProviderToken": "check `certificate`: APNs takes it for none that signs pushes",
      "ExpiredProviderToken": "set this machine's clock",
      "InvalidProviderToken": signature, "MissingTopic": topic,
      "TooManyProviderTokenUpdates": "wait twenty minutes, and look for what else makes tokens with this `keyID`",
    ]
  }()

  private static let fcm: [String: String] = {
    let ownAPNs = "upload the project's APNs key in the Firebase console"
    return [
      "UNAUTHENTICATED": "set this machine's clock, and check that the service account's key hasn't been deleted",
      "PERMISSION_DENIED":
        "in the project of `project_id`, enable the Firebase Cloud Messaging API and give the service account a role with the permission cloudmessaging.messages.create",
      "NOT_FOUND": "check `project_id` of the service account",
      "THIRD_PARTY_AUTH_ERROR": ownAPNs, "APNS_AUTH_ERROR": ownAPNs,
    ]
  }()

  private static let signature = "check `key`, `keyID` and `teamID`; the key may be revoked"

  /// For words that aren't known, by status: what a provider says, and what only a server does that is none.
  public static func words(for meaning: ReplyMeaning, isFCM: Bool) -> String {
    if let remedy = (isFCM ? fcm : apns)[meaning.reason] { return remedy }
    switch meaning.status {
    case 401 where isFCM: return fcm["UNAUTHENTICATED"] ?? ""
    case 403 where isFCM: return fcm["PERMISSION_DENIED"] ?? ""
    case 404 where isFCM: return "check `project_id` of the service account, and `endpoint`"
    case 403: return signature
    default: return "check `endpoint`: the provider itself doesn't answer so"
    }
  }

  /// Whether the provider's documents have the word: with one that they don't have, a refusal may be of the credential as well.
  public static func isKnown(_ meaning: ReplyMeaning, isFCM: Bool) -> Bool {
    let rows = isFCM ? [FCMReply.errorCodeRows, FCMReply.statusWordRows] : [APNsReply.rows]
    return rows.contains { $0.contains { $0.reason == meaning.reason } }
  }
}
