import Foundation
import Testing

@testable import PushCore

/// `docs/outcomes.md` and `docs/translation.md` are the tables in code, printed. To print them anew:
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

  @Test("docs/rules.md has every rule that code, tests and pages cite")
  func rules() throws {
    let root = Self.folder.deletingLastPathComponent()
    let page = try String(contentsOf: Self.folder.appendingPathComponent("rules.md"), encoding: .utf8)
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

  @Test("docs/outcomes.md is what the reply tables say")
  func outcomes() throws {
    var text = """
      # What a provider's answer becomes

      Printed from the tables in `Sources/PushCore/Reply`; a test fails when this page is stale.

      | Outcome | Feedback | Dead letter |
      |---|---|---|
      | delivered | | |
      | gone | `NotRegistered` | |
      | suspect | the code | the code |
      | dropped | | the code |
      | credential | | none: it waits, costing no attempt, until the provider takes the credential; the code, when it can't wait |
      | retried | | the code, when attempts or time to live are used up |

      A reason counts only with its own class of status; what the tables don't know is judged by the status alone. `invalid_since` of a
      410 is the provider's own time: prune only what was registered before. ⚠ marks what an operator has to look at: the log says it, at
      most once in five minutes for each credential and reason. While requests wait for a stopped credential, each worker asks once a minute
      whether it is taken again, with a request that reaches nobody: to APNs for the app's own topic, to FCM with `validate_only`. A topic that
      the request chose itself stops nothing. The topic of another push type than an alert's stops nothing once the credential was asked for the app's own topic, whatever came
      of that. A missing project stops nothing once other pushes are taken. The push is then a dead letter with the code.

      What can't be translated for a platform (too large, a reserved name), or has no credential for it, never gets there: each device of a
      request has a dead letter of its own, which names it. Of a broadcast to a topic, a condition or `/all` it is one for each such platform and
      reason, the request as it came, and its devices count as failed in the result; replayed under its message id it reaches nobody twice; a
      corrected request needs a new id.

      A push whose place a newer one with the same collapse key has taken, while it waited, ends as `Collapsed`: it is no success in the result and has no
      dead letter, and neither figures, alerts nor `pushfleet top` count it as failed or among what was to be delivered.

      ### Dead letters on request

      `Expired`, `Collapsed` and `NothingForPlatform` leave a dead letter only where the setting `deadLetters` names them; `x-push-error` then has that word. If nobody
      has got a request that expired, there is one letter, the request as it came. Otherwise each device has a letter of its own, which names it; so has each device of a broadcast
      that is too late or has been replaced. `NothingForPlatform` leaves one letter for all of a broadcast's devices. A request that expired after an attempt is a
      dead letter with the last reason, as without the setting.

      Nothing replays these letters by itself, and `pushfleet dead replay` takes each one once. A request whose property `timestamp` is still there expires again and
      is back among the dead letters; publish it with a new timestamp to send it after all. Without a timestamp its lifetime begins anew. A replayed
      `Collapsed` is sent, though a newer one was.

      ## Waiting


      """
    text += "| Retry | Cause | First | Then | At most | Concerns |\n|---|---|---|---|---|---|\n"
    for retry in RetryClass.allCases {
      text +=
        "| \(retry.rawValue) | \(retry.row.words) | \(Self.words(retry.delay(afterAttempt: 1))) "
        + "| \(Self.words(retry.delay(afterAttempt: 2))) | \(Self.words(retry.row.cap)) | \(retry.scope.rawValue) |\n"
    }
    text += """

      The wait doubles each time. A provider's `Retry-After` (seconds or a date, 1 s to 1 h) replaces it; FCM is never asked again within
      10 s. The request then waits on the first step of the ladder that is long enough, or on a shorter one and once more where that comes nearer or
      it wouldn't live long enough. To a wait of five times a step or more, such a step is added for some of the requests, by chance. Where fifteen
      minutes are more than a request has left, it is tried again as late as it can be.

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

      `INVALID_ARGUMENT` is suspect(`InvalidRegistration`) when the answer names the token or the installation (its field, or "not a valid FCM
      registration token"), and `MessageTooBig` when it says so. `QUOTA_EXCEEDED` is retried as perDevice (`DeviceMessageRateExceeded`) when its
      `QuotaFailure` is the device's. What is said of a topic of FCM's own concerns no token: no feedback, and `UNREGISTERED` is a dead letter
      too. Then `status`:


      """
    text += Self.table(FCMReply.statusWordRows, first: "status")
    text += "\nWith neither:\n\n" + Self.table(FCMReply.statusRows)
    try Self.compare(text, with: "outcomes.md")
  }

  @Test("docs/translation.md is what the mapping rules say")
  func translation() throws {
    var text = """
      # What becomes of a request's fields

      Printed from `Sources/PushCore/Translation/MappingRule.swift`; a test fails when this page is stale. GS-… are [rules](rules.md), F-REF
      is the legacy HTTP server reference. Where a platform has no counterpart, `explain` and a dry run's result say so with these words.

      | Field | APNs | FCM v1 | Rule |
      |---|---|---|---|

      """
    for rule in MappingRule.allCases {
      let row = rule.row
      text += "| `\(row.field)` | \(Self.words(row.apns)) | \(Self.words(row.fcm)) | \(row.rule) |\n"
    }
    text += """

      Sizes: an APNs payload has at most 4,096 bytes (5,120 for voip and for a broadcast to a channel), counted as sent.
      For FCM the keys and values of notification and
      data have at most 4,096 bytes together (2,048 to a topic of FCM's own), `apns.payload` as many. Anything above is `MessageTooBig`.

      ## iPhones

      An iPhone gets the same by APNs and by FCM: one decision makes push type, priority, expiration and collapse id for both, and FCM gets it in
      `apns`, beside what is for Android. So every body to FCM has `apns.headers`, unless the request has nothing for an iPhone. What `upmc` adds to an
      alert (a sound, `mutable-content`, the object `mps`) it has by both.

      `delay_while_idle` beside `priority: high` is dropped on both platforms, and the push goes out with the high priority (GS-072).

      What only Android or the web shows (`icon`, `tag`, …, `android.notification`, `android.data`, a `remote_notification`, a `webpush` block), without data,
      is no push to an iPhone: a background push would wake the app for nothing. The result for such a device is `{"error":"NothingForPlatform"}`, and a
      counter counts it; there is neither feedback nor, unless `deadLetters` names it, a dead letter, as sending it again would change nothing. A request that has neither notification nor
      data wakes the app on purpose, also beside options alone (`android.priority`, `android.ttl`) or a `background_sync`.

      While a device is offline APNs keeps one notification for each app, the last. So that each message without a `collapse_key` is delivered
      (GS-031) holds up to the hand-over to APNs, not past it (GS-073); FCM keeps up to a hundred.

      ## Lifetime

      Everything counts from publication: the property `timestamp`, or else when a worker first saw the request, which goes along wherever it waits.
      `time_to_live` ends the request in the fleet, whatever `apns-expiration` or `android.ttl` say beside it. `android.ttl` wins for Android devices:
      less the time spent queued, and `0s` when that is over, since a token of FCM may be an iPhone's, whose `apns-expiration` is the request's.

      ## Push types

      | apns-push-type | Topic | Bytes |
      |---|---|---|

      """
    for type in PushType.allCases {
      text +=
        "| \(utf8(type.word)) | bundle ID\(type.topicSuffix.isEmpty ? "" : " + `\(type.topicSuffix)`") | \(type.payloadLimit) |\n"
    }
    try Self.compare(text, with: "translation.md")
  }

  @Test("every rule has a place and words for both platforms", arguments: MappingRule.allCases)
  func rows(rule: MappingRule) {
    #expect(!rule.row.rule.isEmpty && !rule.row.field.isEmpty && !rule.row.apns.words.isEmpty && !rule.row.fcm.words.isEmpty)
  }

  static func words(_ mapping: MappingRule.Mapping) -> String {
    mapping.action.map { $0 == .converted ? mapping.words : "**\($0.rawValue)**: \(mapping.words)" } ?? mapping.words
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
    case .refreshTokenAndReplace: "another token, replaced"
    case .refreshToken: "token made anew"
    case .keepTokenAndWait: "the token before for 20 min, else one push a minute"
    case .stopCredential: "credential stopped"
    case .stopTopic: "credential stopped, if the topic is the app's"
    case .stopProject: "credential stopped, unless others are taken"
    }
  }

  static func table(_ rows: [ReplyRow], first: String) -> String {
    "| HTTP | \(first) | Outcome | Connection | Meaning |\n|---|---|---|---|---|\n"
      + rows.map {
        "| \($0.status) | \($0.reason) | \(words($0.reaction)) | \(words($0.connection)) | \($0.alarm ? "⚠ " : "")\($0.words) |\n"
      }.joined()
  }

  static func table(_ rows: [StatusRow]) -> String {
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
