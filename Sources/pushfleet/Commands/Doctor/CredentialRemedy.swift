import PushCore

/// What to do about a provider's refusal of a credential: the settings that may be wrong.
enum CredentialRemedy {
  /// By the provider's word.
  private static let apns: [String: String] = {
    let topic = "check `topic`: the bundle id that the key or certificate is for"
    let environment = "check `environment`: the key or certificate is for the other one"
    return [
      "TopicDisallowed": topic, "BadTopic": topic, "MissingTopic": topic,
      "BadEnvironmentKeyInToken": environment, "BadEnvironmentKeyIdInToken": environment,
      "BadCertificateEnvironment": environment,
      "BadCertificate": "renew `certificate`, or use a key",
      "MissingProviderToken": "check `certificate`: APNs takes it for none that signs pushes",
      "ExpiredProviderToken": "set this machine's clock",
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

  /// For words that aren't known, by status: what a provider says, and what only a server does that is none.
  static func of(_ meaning: ReplyMeaning, isFCM: Bool) -> String {
    if let remedy = (isFCM ? fcm : apns)[meaning.reason] { return remedy }
    switch meaning.status {
    case 401 where isFCM: return fcm["UNAUTHENTICATED"] ?? ""
    case 403 where isFCM: return fcm["PERMISSION_DENIED"] ?? ""
    case 404 where isFCM: return "check `project_id` of the service account, and `endpoint`"
    case 403: return "check `key`, `keyID` and `teamID`; the key may be revoked"
    default: return "check `endpoint`: the provider itself doesn't answer so"
    }
  }

  /// Whether the provider's documents have the word: with one that they don't have, a refusal may be of the credential as well.
  static func isKnown(_ meaning: ReplyMeaning, isFCM: Bool) -> Bool {
    let rows = isFCM ? [FCMReply.errorCodeRows, FCMReply.statusWordRows] : [APNsReply.rows]
    return rows.contains { $0.contains { $0.reason == meaning.reason } }
  }
}
