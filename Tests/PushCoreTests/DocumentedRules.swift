@testable import PushCore

/// The rules of `docs/send/translation.md`, and those of them that no loss report names.
extension MappingRule {
  /// In the order of the documentation.
  static let all: [MappingRule] = [
    .text, .subtitle, .badge, .automaticBadge, .sound, .soundObject, .clickAction, .localisation, .icon, .image, .color, .tag,
    .channel, .android, .data, .dataConverted, .dataNull, .extensionMoved, .extensionPage, .dataObject, .priority,
    .backgroundPriority, .delayWhileIdle, .timeToLive, .androidLifetime, .channelLifetime, .collapseKey, .collapseKeyCut,
    .channelCollapseKey, .contentAvailable, .dataOnly, .mutableContent, .mutableWithoutAlert, .categoryWithoutAlert,
    .backgroundKey, .packageName, .dryRun, .apnsBlock, .androidBlock, .androidV2Block, .androidV2Priority, .backgroundSync,
    .webpushBlock, .liveActivityToken, .options, .pushType, .v1Priority, .androidOnly, .appOnly, .declarative, .mdm,
    .unknownName,
  ]

  static let data = MappingRule(
    source: "GS-025", field: "data", apns: .carried("beside aps, names unchanged"), fcm: .carried("data"),
    webpush: .carried("notification.data, and data beside it; only one of the two if both are too large"))
  static let pushType = MappingRule(
    source: "Apple: push types", field: "apns.headers.apns-push-type (absent)",
    apns: .carried(
      "liveactivity when aps says so (event, content-state, attributes-type), alert when there is an alert, badge or sound, else "
        + "background"),
    fcm: .carried("for Apple devices alert or background, as for APNs; FCM itself sets it for a live activity"),
    webpush: .carried("not for browsers"))
  static let v1Priority = MappingRule(
    source: "FCM v1",
    field: "apns.headers.apns-priority, android.priority, webpush.headers.Urgency (absent, in FCM v1's shape)",
    apns: .carried("10; 5 in the background"), fcm: .carried("for Apple devices as for APNs; for Android FCM's default"),
    webpush: .carried("Urgency normal"))
  static let androidOnly = MappingRule(
    source: "GS-027",
    field: "notification, webpush, android.notification or android.data (no data, nothing to show on an Apple device)",
    apns: .dropped("no push: the result says NothingForPlatform"), fcm: .carried("no apns"),
    webpush: .carried("notification and webpush; the others are not for browsers"))
  static let appOnly = MappingRule(
    source: "RFC 8030", field: "a request without title, body, data and webpush.notification", apns: .carried("as above"),
    fcm: .carried("as above"), webpush: .dropped("no push: the result says NothingForPlatform"))
  static let declarative = MappingRule(
    source: "W3C Push API", field: "notification (with a title and an https link)", apns: .carried("as above"),
    fcm: .carried("as above"), webpush: .carried("declarative, with web_push 8030: Safari shows it without a service worker"))
  static let mdm = MappingRule(
    source: "Apple: MDM commands", field: "apns.headers.apns-push-type (mdm, fileprovider)",
    apns: .carried("no aps if it would be empty"), fcm: .carried("the same header"), webpush: .carried("not for browsers"))
}
