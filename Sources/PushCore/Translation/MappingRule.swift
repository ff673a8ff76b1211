/// One rule of translation: a field of the request, its form on each platform, and the source of the rule. Loss reports are made
/// from these rules, and `docs/send/translation.md` from these and those of `DocumentedRules.swift` in the tests.
struct MappingRule: Equatable, Sendable {
  struct Mapping: Equatable, Sendable {
    /// Nil if the field is carried unchanged.
    let action: LossReport.Action?
    let words: String

    static func carried(_ words: String) -> Mapping { Mapping(action: nil, words: words) }
    static func converted(_ words: String) -> Mapping { Mapping(action: .converted, words: words) }
    static func cut(_ words: String) -> Mapping { Mapping(action: .cut, words: words) }
    static func emulated(_ words: String) -> Mapping { Mapping(action: .emulated, words: words) }
    static func dropped(_ words: String) -> Mapping { Mapping(action: .dropped, words: words) }
  }

  /// GS-… of GCM's concept documents, the page of Apple's or Google's documentation, or the protocol of web push.
  let source: String
  let field: String
  let apns: Mapping
  let fcm: Mapping
  let webpush: Mapping

  func mapping(_ platform: Platform) -> Mapping {
    switch platform {
    case .apns: apns
    case .fcm: fcm
    case .webpush: webpush
    }
  }

  static let text = MappingRule(
    source: "GS-008", field: "notification.title, .body", apns: .carried("aps.alert.title, .body"),
    fcm: .carried("notification.title, .body"), webpush: .carried("notification.title, .body"))
  static let subtitle = MappingRule(
    source: "F-REF notification", field: "notification.subtitle, .subtitle_loc_*", apns: .carried("aps.alert"),
    fcm: .converted("for Apple devices only: apns.payload.aps.alert"), webpush: .dropped("no counterpart"))
  static let badge = MappingRule(
    source: "GS-096", field: "notification.badge", apns: .converted("aps.badge, a number"),
    fcm: .converted("for Apple devices only: apns.payload.aps.badge, a number"),
    webpush: .converted("app_badge, a number, in notification and beside it"))
  static let automaticBadge = MappingRule(
    source: "GS-096", field: "notification.badge (auto)", apns: .converted("aps.badge, the device's counter plus one"),
    fcm: .converted("android.notification.notification_count and apns.payload.aps.badge, the same number"),
    webpush: .converted("app_badge, the device's counter plus one, in notification and beside it"))
  static let sound = MappingRule(
    source: "GS-097", field: "notification.sound", apns: .carried("aps.sound"),
    fcm: .carried("android.notification.sound and apns.payload.aps.sound"),
    webpush: .dropped("no counterpart: the browser or its system plays its own"))
  static let soundObject = MappingRule(
    source: "F-REF notification", field: "notification.sound (an object)", apns: .carried("aps.sound"),
    fcm: .cut("Android plays the name only"), webpush: .dropped("no counterpart: the browser or its system plays its own"))
  static let clickAction = MappingRule(
    source: "GS-100, GS-101", field: "notification.click_action", apns: .converted("aps.category"),
    fcm: .carried(
      "android.notification.click_action and apns.payload.aps.category; an https URL also in webpush.fcm_options.link"),
    webpush: .converted("an https URL: notification.navigate"))
  static let localisation = MappingRule(
    source: "GS-091 – GS-095", field: "notification.title_loc_*, .body_loc_*",
    apns: .converted("aps.alert.title-loc-key, title-loc-args, loc-key, loc-args"),
    fcm: .carried("android.notification and apns.payload.aps.alert, arguments as an array of strings"),
    webpush: .dropped("no counterpart: a browser has no strings of an app"))
  static let icon = MappingRule(
    source: "GS-098", field: "notification.icon", apns: .dropped("iOS shows the app's icon"),
    fcm: .carried("android.notification.icon; an https URL also in webpush.notification.icon"),
    webpush: .carried("an https URL: notification.icon"))
  static let image = MappingRule(
    source: "FCM v1 Notification", field: "notification.image", apns: .dropped("no counterpart"),
    fcm: .carried("notification.image"), webpush: .carried("an https URL: notification.image"))
  static let color = MappingRule(
    source: "GS-099", field: "notification.color", apns: .dropped("no counterpart"),
    fcm: .carried("android.notification.color"), webpush: .dropped("no counterpart"))
  static let tag = MappingRule(
    source: "GS-103, GS-105", field: "notification.tag",
    apns: .dropped("every notification stays in the history; a collapse_key would replace it"),
    fcm: .carried("android.notification.tag"), webpush: .carried("notification.tag"))
  static let channel = MappingRule(
    source: "F-REF notification", field: "notification.android_channel_id", apns: .dropped("no counterpart"),
    fcm: .carried("android.notification.channel_id"), webpush: .dropped("no counterpart"))
  static let android = MappingRule(
    source: "FCM v1 AndroidNotification",
    field: "notification.ticker, .sticky, .local_only, .event_time, .notification_priority, .visibility, "
      + ".notification_count, .default_sound",
    apns: .dropped("no counterpart"), fcm: .carried("android.notification"), webpush: .dropped("no counterpart"))
  static let dataConverted = MappingRule(
    source: "F-REF data", field: "data (a value that isn't a string)", apns: .converted("written as a string"),
    fcm: .converted("written as a string"), webpush: .converted("written as a string"))
  static let dataNull = MappingRule(
    source: "F-REF data", field: "data (null)", apns: .dropped("a null is no value"), fcm: .dropped("a null is no value"),
    webpush: .dropped("a null is no value"))
  static let extensionMoved = MappingRule(
    source: "UP-19", field: "data.ext (of an alert, if the application has upmc)",
    apns: .converted("mps.ext, for the app's library"), fcm: .carried("data.ext; for Apple devices mps.ext too"),
    webpush: .carried("data.ext"))
  static let extensionPage = MappingRule(
    source: "UP-21", field: "data.ext (too large for the push)",
    apns: .converted("the address of a page with the content, if the application has upmc and richPages is set"),
    fcm: .converted("the address of a page with the content, if the application has upmc and richPages is set"),
    webpush: .converted("the address of a page with the content, if the application has upmc and richPages is set"))
  static let dataObject = MappingRule(
    source: "UP-19", field: "data.mps (absent, if the application has upmc)", apns: .carried("mps beside aps, for an alert"),
    fcm: .emulated("added: the object mps as a string, for acknowledgements by an Android app; its bytes count"),
    webpush: .carried("not added"))
  static let priority = MappingRule(
    source: "GS-051, GS-054", field: "priority", apns: .converted("apns-priority: normal 5, high 10; absent: normal"),
    fcm: .converted("android.priority and, for Apple devices, apns-priority as for APNs; absent: NORMAL and 5"),
    webpush: .converted("Urgency: normal, high; absent: normal"))
  static let backgroundPriority = MappingRule(
    source: "GS-057", field: "priority (of a background push)",
    apns: .cut("APNs refuses 10 for a background push: sent with 5"), fcm: .cut("apns-priority 5; Android's stays as it is"),
    webpush: .carried("as for any other push"))
  static let delayWhileIdle = MappingRule(
    source: "GS-072", field: "delay_while_idle", apns: .emulated("no counterpart, sent with priority 5"),
    fcm: .emulated("no counterpart, sent with priority NORMAL"), webpush: .emulated("no counterpart, sent with Urgency low"))
  static let timeToLive = MappingRule(
    source: "GS-062, GS-063", field: "time_to_live", apns: .converted("apns-expiration, counted from publishing; 0 for 0"),
    fcm: .converted("android.ttl less the time spent queued; for Apple devices apns-expiration as for APNs"),
    webpush: .converted("TTL less the time spent queued"))
  static let androidLifetime = MappingRule(
    source: "FCM v1 AndroidConfig", field: "android.ttl, android_v2.ttl (no time_to_live)",
    apns: .emulated("limits the whole request's life; apns-expiration follows from it"),
    fcm: .emulated("android.ttl less the time spent queued; for Apple devices apns-expiration from it"),
    webpush: .emulated("limits the whole request's life; TTL follows from it"))
  static let channelLifetime = MappingRule(
    source: "Apple: broadcasts", field: "android.ttl, android_v2.ttl (to a channel, no time_to_live)",
    apns: .emulated("limits the whole request's life; apns-expiration is 0, which every channel accepts"),
    fcm: .carried("no channels"), webpush: .carried("no channels"))
  static let collapseKey = MappingRule(
    source: "GS-033", field: "collapse_key", apns: .converted("apns-collapse-id"),
    fcm: .converted("android.collapse_key; for Apple devices apns-collapse-id"), webpush: .converted("Topic, a hash of it"))
  static let collapseKeyCut = MappingRule(
    source: "GS-034", field: "collapse_key (longer than 64 bytes, or with blanks at its ends)",
    apns: .cut("at most 43 bytes of it, ~ and a hash of the whole, so that different keys stay different"),
    fcm: .cut("apns-collapse-id as for APNs; Android gets the whole key"), webpush: .carried("a hash like any other"))
  static let channelCollapseKey = MappingRule(
    source: "Apple: broadcasts", field: "collapse_key (to a channel)", apns: .dropped("a channel has no collapse id"),
    fcm: .carried("no channels"), webpush: .carried("no channels"))
  static let contentAvailable = MappingRule(
    source: "GS-009", field: "content_available",
    apns: .converted("aps.content-available; a background push when nothing is shown"),
    fcm: .converted("for Apple devices only: apns.payload.aps.content-available"),
    webpush: .dropped("no counterpart: a browser must show something for every push"))
  static let dataOnly = MappingRule(
    source: "GS-010", field: "data (nothing to show, no content_available)",
    apns: .emulated("GCM's own connection to the app has no counterpart: sent as a background push"),
    fcm: .emulated("a data message; for Apple devices a background push, as for APNs"),
    webpush: .emulated("for the page's service worker, which must show something"))
  static let mutableContent = MappingRule(
    source: "F-REF mutable_content", field: "mutable_content", apns: .converted("aps.mutable-content"),
    fcm: .converted("for Apple devices only: apns.payload.aps.mutable-content"),
    webpush: .converted("mutable, in notification and beside it"))
  static let mutableWithoutAlert = MappingRule(
    source: "Apple: service extensions", field: "mutable_content (without an alert)",
    apns: .dropped("without an alert no service extension runs"), fcm: .dropped("without an alert no service extension runs"),
    webpush: .dropped("nothing is shown that a service worker could change"))
  static let categoryWithoutAlert = MappingRule(
    source: "Apple: background updates", field: "notification.click_action (nothing to show)",
    apns: .dropped("a background push has no category"), fcm: .dropped("for Apple devices: a background push has no category"),
    webpush: .dropped("nothing is shown to click on"))
  static let backgroundKey = MappingRule(
    source: "Apple: background updates", field: "apns.payload.aps (of a background push)",
    apns: .dropped("a background push has content-available 1; another key is refused"),
    fcm: .dropped("for Apple devices: a background push has nothing but content-available"),
    webpush: .carried("not for browsers"))
  static let packageName = MappingRule(
    source: "F-REF restricted_package_name", field: "restricted_package_name",
    apns: .dropped("compared with the app, not sent"),
    fcm: .carried("android.restricted_package_name, the package for an application's id"),
    webpush: .dropped("compared with the app, not sent"))
  static let dryRun = MappingRule(
    source: "F-REF dry_run", field: "dry_run", apns: .emulated("validated and translated, never sent"),
    fcm: .converted("validate_only; for an audience or a device of the registry FCM is not asked"),
    webpush: .emulated("validated and translated, never sent"))
  static let apnsBlock = MappingRule(
    source: "FCM v1 ApnsConfig", field: "apns", apns: .carried("wins key by key over headers, aps, aps.alert and data"),
    fcm: .carried("apns, the same"), webpush: .carried("not for browsers"))
  static let androidBlock = MappingRule(
    source: "FCM v1 AndroidConfig", field: "android", apns: .carried("not for Apple devices"),
    fcm: .carried("wins key by key over android and android.notification"), webpush: .carried("not for browsers"))
  static let androidV2Block = MappingRule(
    source: "FCM v1 AndroidConfigV2", field: "android_v2",
    apns: .dropped("for Android only: iPhones get the fields outside it"),
    fcm: .carried("wins key by key over android_v2, which replaces android"),
    webpush: .dropped("for Android only: browsers get the fields outside it"))
  static let androidV2Priority = MappingRule(
    source: "FCM v1 AndroidConfigV2", field: "priority, delay_while_idle (beside android_v2)", apns: .carried("as above"),
    fcm: .dropped("for Android: a remote_notification goes out at once, a background_sync may wait"),
    webpush: .carried("as above"))
  static let backgroundSync = MappingRule(
    source: "FCM v1 AndroidConfigV2", field: "notification (beside android_v2.background_sync)", apns: .carried("as above"),
    fcm: .dropped("for Android, except title, body and image: a background_sync shows nothing"), webpush: .carried("as above"))
  static let webpushBlock = MappingRule(
    source: "FCM v1 WebpushConfig", field: "webpush", apns: .carried("not for Apple devices"), fcm: .carried("webpush"),
    webpush: .carried("wins key by key over headers, notification, data and link; Topic is sent as a hash of it"))
  static let liveActivityToken = MappingRule(
    source: "FCM v1 ApnsConfig", field: "apns.live_activity_token",
    apns: .converted("the push goes to this token, as liveactivity"), fcm: .carried("apns.live_activity_token"),
    webpush: .carried("not for browsers"))
  static let options = MappingRule(
    source: "FCM v1 FcmOptions", field: "fcm_options, apns.fcm_options",
    apns: .dropped("for FCM only: its statistics, and an image that FCM adds"), fcm: .carried("the same"),
    webpush: .dropped("for FCM only: its statistics"))
  static let unknownName = MappingRule(
    source: "GS-012", field: "an unknown name, if the application ignores unknown names (unknownKeys)",
    apns: .dropped("unknown"), fcm: .dropped("unknown"), webpush: .dropped("unknown"))
}
