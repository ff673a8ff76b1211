/// Advice for a provider that refuses a credential or can't be reached: the settings to check and the runbook section. The log,
/// `pushfleet status`, the status page and the doctor use the same words.
public struct ProviderRemedy: Sendable, Equatable {
  public let words: String
  public let section: String

  /// - Parameter reason: the provider's word, or the reason why the provider can't be reached.
  public static func of(_ reason: String, isCredentialRefused: Bool) -> ProviderRemedy {
    let known = apns[reason] ?? fcm[reason] ?? webpush[reason]
    guard isCredentialRefused || known != nil else {
      return ProviderRemedy(
        words:
          "for connection and TLS errors, check the network, `endpoint` and `ca`; otherwise wait: requests are retried automatically",
        section: "docs/operate/runbook.md#pushfleetproviderintrouble")
    }
    return ProviderRemedy(words: known ?? credential, section: "docs/operate/runbook.md#pushfleetcredentialrefused")
  }

  private static let credential = "check the credential's settings with `pushfleet doctor`; the key may be revoked"

  private static let apns: [String: String] = {
    let topic = "check `topic`: the bundle id that the key or certificate is for"
    let environment = "check `environment`: the key or certificate is for the other environment"
    return [
      "TopicDisallowed": topic, "BadTopic": topic,
      "BadEnvironmentKeyInToken": environment, "BadEnvironmentKeyIdInToken": environment,
      "BadCertificateEnvironment": environment,
      "BadCertificate": "renew `certificate`, or use a key",
      "MissingProviderToken": "check `certificate`: APNs doesn't accept it for pushes",
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

  private static let webpush: [String: String] = {
    let otherKey = "load the key that the subscription was made with: `key` may be a list"
    return [
      "BadJwtToken": vapid, "errno 109": vapid,
      "BadVapidPublicKey": "check `key`: an EC key of P-256; `pushfleet vapid show` prints its public key",
      "VapidPkHashMismatch": otherKey, "UnauthorizedRegistration": otherKey,
    ]
  }()

  private static let vapid =
    "set this machine's clock, and check `subject`: Apple accepts a `mailto:` or https address, but none at localhost; check `key`"

  private static let signature = "check `key`, `keyID` and `teamID`; the key may be revoked"

  /// The advice for an answer. Falls back to its status if the reason is unknown.
  public static func words(for meaning: ReplyMeaning, _ platform: Platform) -> String {
    switch platform {
    case .apns: apns[meaning.reason] ?? (meaning.status == 403 ? signature : endpoint)
    case .fcm: fcm[meaning.reason] ?? wordsOfFCM(meaning.status)
    case .webpush:
      webpush[meaning.reason] ?? ([401, 403].contains(meaning.status) ? vapid : "look at the push service of this host")
    }
  }

  private static func wordsOfFCM(_ status: Int) -> String {
    switch status {
    case 401: fcm["UNAUTHENTICATED"] ?? ""
    case 403: fcm["PERMISSION_DENIED"] ?? ""
    case 404: "check `project_id` of the service account, and `endpoint`"
    default: endpoint
    }
  }

  private static let endpoint = "check `endpoint`: the provider itself never answers like this"

  /// True if the provider documents the reason. A refusal with an undocumented reason may concern the credential too.
  public static func isKnown(_ meaning: ReplyMeaning, _ platform: Platform) -> Bool {
    let rows =
      switch platform {
      case .apns: APNsReply.rows
      case .fcm: FCMReply.errorCodeRows + FCMReply.statusWordRows
      case .webpush: WebPushReply.rows + WebPushReply.textRows
      }
    return rows.contains { $0.reason == meaning.reason }
  }
}
