import Foundation
import Testing

@testable import PushCore

/// `docs/send/outcomes.md` and `docs/send/translation.md` are the tables in code, printed. To print them anew:
/// `PUSHFLEET_WRITE_DOCS=1 swift test --filter DocumentationTests`.
@Suite struct DocumentationTests {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("docs")

  static func compare(_ text: String, with name: String) throws {
    let file = folder.appendingPathComponent(name)
    if ProcessInfo.processInfo.environment["PUSHFLEET_WRITE_DOCS"] != nil {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    let found = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    #expect(found == text, "docs/\(name) is stale: PUSHFLEET_WRITE_DOCS=1 swift test --filter DocumentationTests")
  }

  /// The ids of rules that a text holds.
  private static func rules(in text: String) -> [String] {
    var rules: [String] = []
    for (prefix, digits) in [("GS-", 3), ("UP-", 2)] {
      for rest in text.components(separatedBy: prefix).dropFirst() {
        let number = String(rest.prefix(digits))
        if number.count == digits, Int(number) != nil { rules.append(prefix + number) }
      }
    }
    return rules
  }

  @Test("docs/internals/rules.md has every rule that code, tests and pages cite")
  func rules() throws {
    let root = Self.folder.deletingLastPathComponent()
    let page = try String(contentsOf: Self.folder.appendingPathComponent("internals/rules.md"), encoding: .utf8)
    let known = Set(page.split(separator: "\n").filter { $0.hasPrefix("| ") }.flatMap { Self.rules(in: String($0.prefix(9))) })
    var cited: Set<String> = []
    for folder in ["Sources", "Tests", "docs"] {
      let names = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
      while let name = names?.nextObject() as? String {
        guard name.hasSuffix(".swift") || name.hasSuffix(".md") else { continue }
        cited.formUnion(
          Self.rules(in: try String(contentsOf: root.appendingPathComponent("\(folder)/\(name)"), encoding: .utf8)))
      }
    }
    #expect(cited.count > 80 && cited.subtracting(known) == [])
  }

  @Test("docs/send/outcomes.md is what the reply tables say")
  func outcomes() throws {
    var text = """
      # What a provider's answer becomes

      Printed from the tables in `Sources/PushCore/Reply`; a test fails if this page is stale.

      | Outcome | Feedback | Dead letter |
      |---|---|---|
      | delivered | | |
      | gone | `NotRegistered` | |
      | suspect | the code | the code |
      | dropped | | the code |
      | credential | | none: the request waits, without costing an attempt, until the provider accepts the credential; the code if it can't wait |
      | retried | | the code, if attempts or time to live are used up |

      A reason counts only with a status of its own class. The status alone decides about an answer that the tables don't list. After a 410,
      `invalid_since` is the provider's own time, which only APNs tells: prune only tokens that were registered before it. ⚠ marks answers that an operator
      must look at. The log reports them, at most once in five minutes for each credential and reason.

      While requests wait for a stopped credential, each worker asks the provider once a minute if the credential works again, by a request that
      reaches nobody. To APNs this request has the app's own topic, to FCM it has `validate_only`.

      Some refusals stop nothing. The push is then a dead letter with the code:

      - of a topic that the request chose itself
      - of the topic of another push type than an alert's, once the credential was tested with the app's own topic (with any result)
      - for a missing project, once other pushes were accepted

      A push is not sent if it can't be translated for a platform (too large, a reserved name) or if there is no credential for it. Each device of the
      request then has a dead letter that names it. A broadcast to a topic, a condition or `/all` has one dead letter for each platform and reason,
      with the request as it came; if it has several [chains](../decisions/0050-page-chains.md), at most four, one for each. Its devices count as failed in the result. A replay under the same message id reaches no device twice; a
      corrected request needs a new id.

      A push that was [replaced while it waited](request.md#collapse-keys) ends as `Collapsed`. It is not a success in the result. Metrics,
      alerts and `pushfleet top` count it neither as failed nor as a push to be delivered. The same holds for a push that an operator
      [has discarded](../operate/operating.md#one-credential-or-sender): it ends as `Cancelled`, without a dead letter.

      ### Dead letters on request

      `Expired`, `Collapsed` and `NothingForPlatform` leave a dead letter only if the setting `deadLetters` names them. `x-push-error` then has that
      word.

      - If an expired request has reached no device, there is one dead letter, with the request as it came. Otherwise each device has a dead letter
        that names it.
      - Each device of a broadcast that has expired or was replaced has a dead letter that names it.
      - `NothingForPlatform` leaves one dead letter for all devices of a broadcast, or of a chain of it.
      - A request that expires after an attempt is a dead letter with the last reason, with or without the setting.

      These dead letters are replayed only by hand, and `pushfleet dead replay` replays each of them once. A request that still has its `timestamp` expires
      again and returns to the dead letters. To send it after all, publish it with a new timestamp. Without a timestamp its lifetime starts
      again. A replayed `Collapsed` is sent, although a newer request was sent.

      ## Waiting


      """
    text += "| Retry | Cause | First | Then | At most | Concerns |\n|---|---|---|---|---|---|\n"
    for retry in RetryClass.allCases {
      text +=
        "| \(retry.rawValue) | \(Self.cause(of: retry)) | \(Self.words(retry.delay(afterAttempt: 1))) "
        + "| \(Self.words(retry.delay(afterAttempt: 2))) | \(Self.words(retry.row.cap)) | \(retry.scope.rawValue) |\n"
    }
    text += """

      The wait doubles each time. A provider's `Retry-After` (seconds or a date, 1 s to 1 h) replaces it, but FCM is never asked again within
      10 s, and neither is a push service that has a fault. No wait is longer than the longest step of the ladder. The request waits on the first step
      that is long enough. It waits on a shorter step, and then on another one, if the shorter step is at least four fifths of the wait, or if the request wouldn't outlive the longer
      step. To spread retries, some requests also wait on a further step, chosen at random, of at most a
      fifth of the wait. If the first wait of `outage` is longer than a request has left to live, the request is tried again as late as possible.

      ## APNs


      """
    text += Self.table(APNsReply.rows, first: "Reason")
    text += "\nWithout a known reason:\n\n" + Self.table(APNsReply.statusRows)
    text += """

      ## FCM v1

      `details[].errorCode` first:


      """
    text += Self.table(FCMReply.errorCodeRows, first: "errorCode")
    text += """

      `INVALID_ARGUMENT` is suspect (`InvalidRegistration`) if the answer names the token or the installation (its field, or "not a valid FCM
      registration token"). It is `MessageTooBig` if the answer says so. `QUOTA_EXCEEDED` is retried as perDevice (`DeviceMessageRateExceeded`) if its
      `QuotaFailure` is the device's. An answer about one of FCM's own topics concerns no token: there is no feedback, and `UNREGISTERED` is a dead
      letter too.

      If there is no `errorCode`, `status` decides:


      """
    text += Self.table(FCMReply.statusWordRows, first: "status")
    text += "\nWithout both:\n\n" + Self.table(FCMReply.statusRows)
    text += """

      ## Web push

      Any 2xx is a success, unless WNS says in `X-WNS-STATUS` that it throttles the browser's channel. The vendor's word decides about any other answer but
      404 and 410. It is Apple's `reason`, Mozilla's `errno`, the title of Google's HTML page, or `X-WNS-ERROR-DESCRIPTION`:


      """
    text += Self.table(WebPushReply.rows, first: "Word")
    text += """

      Google's other answers are text, which may have these words:


      """
    text += Self.table(WebPushReply.textRows, first: "Words")
    text += "\nWithout a known word:\n\n" + Self.table(WebPushReply.statusRows)
    text += """

      A refused token is replaced once and the push is sent again. If the new token is refused too, the push service's other answers decide. While it
      accepts other pushes, the refusal concerns this subscription: `MismatchSenderId` after a 401, another attempt later after `BadJwtToken`. If it accepts
      none, the key is to blame and the pushes to this push service wait.

      A reason never has the endpoint, which is a secret: what looks like an address or a path is left out of the vendor's words.

      """
    try Self.compare(text, with: "send/outcomes.md")
  }

  @Test("docs/send/translation.md is what the mapping rules say")
  func translation() throws {
    var text = """
      # What becomes of a request's fields

      Printed from `Sources/PushCore/Translation/MappingRule.swift` and `Tests/PushCoreTests/DocumentedRules.swift`; a test fails if this page is stale.
      GS-… and UP-… are [rules](../internals/rules.md);
      F-REF is the legacy HTTP server reference. `explain` and the result of a dry run use the same words. **dropped** means that the platform doesn't get
      the field, **cut** that it gets only a part, and **emulated** that something similar happens.

      | Field | APNs | FCM v1 | Web push | Rule |
      |---|---|---|---|---|

      """
    for rule in MappingRule.all {
      let platforms = Platform.allCases.map { Self.words(rule.mapping($0)) }.joined(separator: " | ")
      text += "| `\(rule.field)` | \(platforms) | \(rule.source) |\n"
    }
    text += """

      ## Sizes

      An APNs payload has at most 4,096 bytes (5,120 for voip and for a broadcast to a channel), counted as sent. For FCM, the keys and values of
      notification and data have at most 4,096 bytes together (2,048 to one of FCM's own topics), and `apns.payload` has at most 4,096 bytes. A web push
      has at most 3,993 bytes before encryption. A larger push is `MessageTooBig`. Firefox on Android takes about 2,600
      bytes, which no endpoint tells: a larger push is `MessageTooBig` by the push service's answer.

      ## iPhones

      An iPhone gets the same push through APNs and through FCM. Push type, priority, expiration and collapse id are decided once for both. FCM gets
      them in `apns`, beside the fields for Android. So every body to FCM has `apns.headers`, unless the request has nothing for an iPhone. An alert has
      the additions of [`upmc`](registry.md#the-object-mps) on both ways.

      `delay_while_idle` with `priority: high` is dropped on both platforms, and the push has the high priority (GS-072).

      A request may have only fields that Android or the web shows (`icon`, `tag`, …, `android.notification`, `android.data`, a `remote_notification`, a
      `webpush` block), and no data. Such a request sends nothing to an iPhone, because a background push would wake the app without a purpose.
      The result for the device is `{"error":"NothingForPlatform"}`, and a counter counts it. There is no feedback, and a dead letter only
      [if the setting asks for one](outcomes.md#dead-letters-on-request), because a second attempt would change nothing. A request without
      notification and data wakes the app on purpose, also with options alone (`android.priority`, `android.ttl`) or a `background_sync`.

      While a device is offline, APNs keeps only the last notification of each app; FCM keeps up to a hundred. So the rule that each message without a
      `collapse_key` is delivered (GS-031) holds only until APNs has accepted the push (GS-073).

      ## Browsers

      A notification with a title and an https link is a declarative web push. Safari shows it
      without the page's service worker and opens the link. The link is `webpush.notification.navigate`, `webpush.fcm_options.link`, or an https
      `click_action`, in this order. Other browsers hand the same JSON to the service worker:

      ```json
      {"web_push": 8030,
       "notification": {"title": "…", "body": "…", "icon": "https://…", "image": "https://…", "tag": "…", "navigate": "https://…",
                        "data": {}, "app_badge": 3, "mutable": true},
       "data": {}, "app_badge": 3, "mutable": true, "fcmMessageId": "<message id>"}
      ```

      Without a link there is no `web_push`, and every browser asks the service worker. `"navigate": null` in `webpush.notification` has the same effect.
      Data without a title, a body or a `webpush.notification` is `{"data": {…}, "fcmMessageId": "…"}`. Browsers require the service worker to show
      something for it. A request that has none of these sends nothing to a browser, and the result for the device is `{"error":"NothingForPlatform"}`.

      `data` is in the notification and beside it. If that is too large, `data` is only in the notification of a declarative push, and only beside that of
      any other push. So a service worker reads `data`, or else `notification.data`.

      The block `webpush` wins key by key: `notification` over the translated keys (null removes a key), `data` over the keys of `data`, and `headers` over
      the options. FCM replaces `data` with `webpush.data` as a whole. `headers` may have `TTL` (0 to 2419200), `Urgency` and `Topic`, in any letter case.
      Other names and values are `InvalidParameters` (a wrong `TTL` is `InvalidTtl`) for browsers with a registration or a `webpush:` target; to FCM they are
      passed on. A topic is always sent as a hash, also the header's: push services allow 32 characters, and Apple refuses some shorter ones.

      ## Lifetime

      The lifetime counts from publication: from the property `timestamp`, or without it from the time when a worker first saw the request. This time stays with
      the request wherever it waits. `time_to_live` ends the request in the fleet, even with another `apns-expiration` or `android.ttl`. For
      Android devices `android.ttl` wins: FCM gets it less the time spent queued, and `0s` after its end. The push is still sent then, because an FCM token
      may belong to an iPhone, and an iPhone has the request's `apns-expiration`. For browsers `webpush.headers.TTL` wins in the same way. After its end, and for
      `time_to_live` 0, the push service gets `TTL: 0` and reaches only a browser that is connected.

      ## Push types

      | apns-push-type | Topic | Bytes |
      |---|---|---|

      """
    for type in PushType.allCases {
      text +=
        "| \(utf8(type.word)) | bundle ID\(type.topicSuffix.isEmpty ? "" : " + `\(type.topicSuffix)`") | \(type.payloadLimit) |\n"
    }
    try Self.compare(text, with: "send/translation.md")
  }

  @Test("every rule has a place and words for all platforms", arguments: MappingRule.all)
  func rows(rule: MappingRule) {
    #expect(!rule.source.isEmpty && !rule.field.isEmpty)
    #expect(Platform.allCases.allSatisfy { !rule.mapping($0).words.isEmpty })
  }

  @Test("every rule is in the list, once")
  func rulesListed() throws {
    let root = Self.folder.deletingLastPathComponent()
    let sources = ["Sources/PushCore/Translation/MappingRule.swift", "Tests/PushCoreTests/DocumentedRules.swift"]
    let defined = try sources.reduce(0) {
      $0 + (try String(contentsOf: root.appendingPathComponent($1), encoding: .utf8)).ranges(of: " = MappingRule(").count
    }
    #expect(MappingRule.all.count == defined && Set(MappingRule.all.map { "\($0)" }).count == defined)
  }

  @Test("every key of notification has a rule", arguments: NotificationKey.allCases)
  func ruleOfKey(key: NotificationKey) { #expect(MappingRule.ofNotification.count { $0.0 == key } == 1) }

  @Test("each key of android_v2 has a rule of its own or that of android's key of the same name")
  func rulesOfAndroidV2() {
    let (keys, notificationKeys) = (AndroidKey.table.fields, AndroidNotificationKey.table.fields)
    #expect(AndroidKey.tableV2.fields.filter { !keys.contains($0) } == [.remoteNotification, .backgroundSync])
    #expect(AndroidNotificationKey.tableV2.fields.filter { !notificationKeys.contains($0) } == [.id])
  }

  static func words(_ mapping: MappingRule.Mapping) -> String {
    mapping.action.map { $0 == .converted ? mapping.words : "**\($0.rawValue)**: \(mapping.words)" } ?? mapping.words
  }

  static func cause(of retry: RetryClass) -> String {
    switch retry {
    case .perDevice: "429 for one device; web push 406, 507"
    case .outage: "APNs 500, 503"
    case .connection: "connection shut down or lost"
    case .fcm: "FCM 500, 503; web push 5xx"
    case .quota: "FCM 429"
    case .refreshedToken: "provider token expired"
    }
  }

  static func words(_ milliseconds: Int64) -> String {
    milliseconds == 0 ? "at once" : milliseconds % 60_000 == 0 ? "\(milliseconds / 60_000) min" : "\(milliseconds / 1000) s"
  }

  static func words(_ reaction: Reaction) -> String {
    switch reaction {
    case .delivered: "delivered"
    case .drop(let code): "dropped, `\(code.rawValue)`"
    case .gone(let code): "gone, `\(code.rawValue)`"
    case .suspect(let code): "suspect, `\(code.rawValue)`"
    case .retry(let retry, let code): "retried (\(retry.rawValue)), `\(code.rawValue)`"
    case .credential(let code): "credential, `\(code.rawValue)`"
    }
  }

  static func words(_ connection: ConnectionReaction) -> String {
    switch connection {
    case .keep: ""
    case .replace: "replaced"
    case .refreshTokenAndReplace: "replaced, with another token"
    case .refreshToken: "new token"
    case .keepTokenAndWait: "the previous token for 20 min, else one push a minute"
    case .stopCredential: "credential stopped"
    case .stopTopic: "credential stopped, if the topic is the app's"
    case .stopProject: "credential stopped, unless other pushes are accepted"
    }
  }

  static func table(_ rows: [ReplyRow], first: String) -> String {
    "| HTTP | \(first) | Outcome | Connection | Meaning |\n|---|---|---|---|---|\n"
      + rows.map {
        "| \($0.status) | \($0.reason) | \(words($0.reaction)) | \(words($0.connection)) | \($0.alarm ? "⚠ " : "")\($0.words) |\n"
      }.joined()
  }

  static func table(_ rows: [ReplyRow]) -> String {
    "| HTTP | Outcome | Connection | Meaning |\n|---|---|---|---|\n"
      + rows.map { row in
        let statuses =
          row.statuses.lowerBound == .min
          ? "else"
          : row.statuses.count == 1 ? "\(row.statuses.lowerBound)" : "\(row.statuses.lowerBound)–\(row.statuses.upperBound)"
        return "| \(statuses) | \(words(row.reaction)) | \(words(row.connection)) | \(row.alarm ? "⚠ " : "")\(row.words) |\n"
      }.joined()
  }
}
