/// One rule of translation: a field of the request, what becomes of it on each platform, and where that is laid down. The loss report
/// and `docs/translation.md` are made from this table.
public enum MappingRule: CaseIterable, Sendable {
  case text, subtitle, badge, automaticBadge, sound, soundObject, clickAction, localisation, icon, color, tag, channel, android
  case data, dataConverted, dataNull, extensionMoved, extensionPage, dataObject
  case priority, backgroundPriority, delayWhileIdle, timeToLive, androidLifetime, channelLifetime, collapseKey, collapseKeyCut,
    channelCollapseKey
  case contentAvailable, dataOnly, mutableContent, mutableWithoutAlert, categoryWithoutAlert, backgroundKey
  case packageName, dryRun, apnsBlock, androidBlock, androidV2Block, androidV2Priority, backgroundSync, webpushBlock,
    liveActivityToken, options, pushType, v1Priority
  case androidOnly, mdm, unknownName

  /// What becomes of the field on one platform.
  public struct Mapping: Sendable {
    /// Nil where it is carried as it is.
    public let action: LossReport.Action?
    public let words: String

    static func carried(_ words: String) -> Mapping { Mapping(action: nil, words: words) }
    static func converted(_ words: String) -> Mapping { Mapping(action: .converted, words: words) }
    static func cut(_ words: String) -> Mapping { Mapping(action: .cut, words: words) }
    static func emulated(_ words: String) -> Mapping { Mapping(action: .emulated, words: words) }
    static func dropped(_ words: String) -> Mapping { Mapping(action: .dropped, words: words) }
  }

  public struct Row: Sendable {
    /// GS-… of GCM's concept documents, or the page of Apple's or Google's documentation.
    public let rule: String
    public let field: String
    public let apns: Mapping
    public let fcm: Mapping
  }

  public var row: Row {
    switch self {
    case .text:
      Row(
        rule: "GS-008", field: "notification.title, .body", apns: .carried("aps.alert.title, .body"),
        fcm: .carried("notification.title, .body"))
    case .subtitle:
      Row(
        rule: "F-REF notification", field: "notification.subtitle, .subtitle_loc_*", apns: .carried("aps.alert"),
        fcm: .converted("for Apple devices only: apns.payload.aps.alert"))
    case .badge:
      Row(
        rule: "GS-096", field: "notification.badge", apns: .converted("aps.badge, a number"),
        fcm: .converted("for Apple devices only: apns.payload.aps.badge, a number"))
    case .automaticBadge:
      Row(
        rule: "GS-096", field: "notification.badge (auto)", apns: .converted("aps.badge, the device's counter after one more"),
        fcm: .converted("android.notification.notification_count and apns.payload.aps.badge, the same"))
    case .sound:
      Row(
        rule: "GS-097", field: "notification.sound", apns: .carried("aps.sound"),
        fcm: .carried("android.notification.sound and apns.payload.aps.sound"))
    case .soundObject:
      Row(
        rule: "F-REF notification", field: "notification.sound (an object)", apns: .carried("aps.sound"),
        fcm: .cut("Android plays the name only"))
    case .clickAction:
      Row(
        rule: "GS-100, GS-101", field: "notification.click_action", apns: .converted("aps.category"),
        fcm: .carried(
          "android.notification.click_action and apns.payload.aps.category; an https URL webpush.fcm_options.link too"))
    case .localisation:
      Row(
        rule: "GS-091 – GS-095", field: "notification.title_loc_*, .body_loc_*",
        apns: .converted("aps.alert.title-loc-key, title-loc-args, loc-key, loc-args"),
        fcm: .carried("android.notification and apns.payload.aps.alert, arguments as an array of strings"))
    case .icon:
      Row(
        rule: "GS-098", field: "notification.icon", apns: .dropped("iOS shows the app's icon"),
        fcm: .carried("android.notification.icon; an https URL webpush.notification.icon too"))
    case .color:
      Row(
        rule: "GS-099", field: "notification.color", apns: .dropped("no counterpart"),
        fcm: .carried("android.notification.color"))
    case .tag:
      Row(
        rule: "GS-103, GS-105", field: "notification.tag",
        apns: .dropped("every notification stays in the history; a collapse_key would replace it"),
        fcm: .carried("android.notification.tag"))
    case .channel:
      Row(
        rule: "F-REF notification", field: "notification.android_channel_id", apns: .dropped("no counterpart"),
        fcm: .carried("android.notification.channel_id"))
    case .android:
      Row(
        rule: "FCM v1 AndroidNotification",
        field: "notification.image, .ticker, .sticky, .local_only, .event_time, .notification_priority, .visibility, "
          + ".notification_count, .default_sound",
        apns: .dropped("no counterpart"), fcm: .carried("notification.image; the others android.notification"))
    case .data:
      Row(rule: "GS-025", field: "data", apns: .carried("beside aps, names unchanged"), fcm: .carried("data"))
    case .dataConverted:
      Row(
        rule: "F-REF data", field: "data (a value that is no string)", apns: .converted("written as a string"),
        fcm: .converted("written as a string"))
    case .dataNull:
      Row(rule: "F-REF data", field: "data (null)", apns: .dropped("a null is no value"), fcm: .dropped("a null is no value"))
    case .extensionMoved:
      Row(
        rule: "UP-19", field: "data.ext (of an alert, where the application has upmc)",
        apns: .converted("mps.ext, for the app's library"), fcm: .carried("data.ext, and for Apple devices mps.ext as well"))
    case .extensionPage:
      Row(
        rule: "UP-21", field: "data.ext (no room for it)",
        apns: .converted("the address of a page that has it, where the application has upmc and richPages is set"),
        fcm: .converted("the address of a page that has it, where the application has upmc and richPages is set"))
    case .dataObject:
      Row(
        rule: "UP-19", field: "data.mps (absent, where the application has upmc)",
        apns: .carried("mps beside aps, of an alert"),
        fcm: .emulated("added: the object mps as a string, by which an Android app acknowledges; its bytes count"))
    case .priority:
      Row(
        rule: "GS-051, GS-054", field: "priority", apns: .converted("apns-priority: normal 5, high 10; absent: normal"),
        fcm: .converted("android.priority and, for Apple devices, apns-priority as for APNs; absent: NORMAL and 5"))
    case .backgroundPriority:
      Row(
        rule: "GS-057", field: "priority (of a background push)",
        apns: .cut("APNs refuses 10 for a background push: sent with 5"),
        fcm: .cut("apns-priority 5; Android's stays as it is"))
    case .delayWhileIdle:
      Row(
        rule: "GS-072", field: "delay_while_idle", apns: .emulated("no counterpart, sent with priority 5"),
        fcm: .emulated("no counterpart, sent with priority NORMAL"))
    case .timeToLive:
      Row(
        rule: "GS-062, GS-063", field: "time_to_live", apns: .converted("apns-expiration, counted from publishing; 0 for 0"),
        fcm: .converted("android.ttl less the time spent queued; for Apple devices apns-expiration as for APNs"))
    case .androidLifetime:
      Row(
        rule: "FCM v1 AndroidConfig", field: "android.ttl, android_v2.ttl (no time_to_live)",
        apns: .emulated("bounds the whole request's life: apns-expiration from it"),
        fcm: .emulated("android.ttl less the time spent queued; for Apple devices apns-expiration from it"))
    case .channelLifetime:
      Row(
        rule: "Apple: broadcasts", field: "android.ttl, android_v2.ttl (to a channel, no time_to_live)",
        apns: .emulated("bounds the whole request's life; apns-expiration is 0, as every channel takes it"),
        fcm: .carried("no channels"))
    case .collapseKey:
      Row(
        rule: "GS-033", field: "collapse_key", apns: .converted("apns-collapse-id"),
        fcm: .converted("android.collapse_key; for Apple devices apns-collapse-id"))
    case .collapseKeyCut:
      Row(
        rule: "GS-034", field: "collapse_key (longer than 64 bytes, or with blanks at its ends)",
        apns: .cut("at most 43 bytes of it, ~ and a hash of all of it, so that different keys stay different"),
        fcm: .cut("apns-collapse-id as for APNs; Android's is whole"))
    case .channelCollapseKey:
      Row(
        rule: "Apple: broadcasts", field: "collapse_key (to a channel)", apns: .dropped("a channel has no collapse id"),
        fcm: .carried("no channels"))
    case .contentAvailable:
      Row(
        rule: "GS-009", field: "content_available",
        apns: .converted("aps.content-available; a background push when nothing is shown"),
        fcm: .converted("for Apple devices only: apns.payload.aps.content-available"))
    case .dataOnly:
      Row(
        rule: "GS-010", field: "data (nothing to show, no content_available)",
        apns: .emulated("GCM's own connection to the app has no counterpart: sent as a background push"),
        fcm: .emulated("a data message; for Apple devices a background push, as for APNs"))
    case .mutableContent:
      Row(
        rule: "F-REF mutable_content", field: "mutable_content", apns: .converted("aps.mutable-content"),
        fcm: .converted("for Apple devices only: apns.payload.aps.mutable-content"))
    case .mutableWithoutAlert:
      Row(
        rule: "Apple: service extensions", field: "mutable_content (without an alert)",
        apns: .dropped("without an alert no service extension runs"),
        fcm: .dropped("without an alert no service extension runs"))
    case .categoryWithoutAlert:
      Row(
        rule: "Apple: background updates", field: "notification.click_action (nothing to show)",
        apns: .dropped("a background push has no category"),
        fcm: .dropped("for Apple devices: a background push has no category"))
    case .backgroundKey:
      Row(
        rule: "Apple: background updates", field: "apns.payload.aps (of a background push)",
        apns: .dropped("a background push has content-available 1; another key is refused"),
        fcm: .dropped("for Apple devices: a background push has nothing but content-available"))
    case .packageName:
      Row(
        rule: "F-REF restricted_package_name", field: "restricted_package_name",
        apns: .dropped("compared with the app, not sent"), fcm: .carried("android.restricted_package_name"))
    case .dryRun:
      Row(
        rule: "F-REF dry_run", field: "dry_run", apns: .emulated("validated and translated, never sent"),
        fcm: .converted("validate_only, which FCM is asked; never sent for an audience or a device of the registry"))
    case .apnsBlock:
      Row(
        rule: "FCM v1 ApnsConfig", field: "apns",
        apns: .carried("wins key by key over headers, aps, aps.alert and data"), fcm: .carried("apns, the same"))
    case .androidBlock:
      Row(
        rule: "FCM v1 AndroidConfig", field: "android", apns: .carried("not for Apple devices"),
        fcm: .carried("wins key by key over android and android.notification"))
    case .androidV2Block:
      Row(
        rule: "FCM v1 AndroidConfigV2", field: "android_v2",
        apns: .dropped("for Android only: iPhones get what stands outside of it"),
        fcm: .carried("wins key by key over android_v2, which stands in the place of android"))
    case .androidV2Priority:
      Row(
        rule: "FCM v1 AndroidConfigV2", field: "priority, delay_while_idle (beside android_v2)", apns: .carried("as above"),
        fcm: .dropped("for Android, where a remote_notification goes out at once and a background_sync may wait"))
    case .backgroundSync:
      Row(
        rule: "FCM v1 AndroidConfigV2", field: "notification (beside android_v2.background_sync)", apns: .carried("as above"),
        fcm: .dropped("for Android, but for what the common notification has: a background_sync shows nothing"))
    case .webpushBlock:
      Row(
        rule: "FCM v1 WebpushConfig", field: "webpush", apns: .carried("not for Apple devices"),
        fcm: .carried("webpush"))
    case .liveActivityToken:
      Row(
        rule: "FCM v1 ApnsConfig", field: "apns.live_activity_token",
        apns: .converted("the push goes to this token, as liveactivity"), fcm: .carried("apns.live_activity_token"))
    case .options:
      Row(
        rule: "FCM v1 FcmOptions", field: "fcm_options, apns.fcm_options",
        apns: .dropped("FCM's own: its statistics, and an image that it adds"), fcm: .carried("the same"))
    case .pushType:
      Row(
        rule: "Apple: push types", field: "apns.headers.apns-push-type (absent)",
        apns: .carried(
          "liveactivity when aps says so (event, content-state, attributes-type), alert when there is an alert, badge or sound, else "
            + "background"),
        fcm: .carried("for Apple devices alert or background, as for APNs; a live activity's FCM finds itself"))
    case .v1Priority:
      Row(
        rule: "FCM v1", field: "apns.headers.apns-priority, android.priority (absent, in FCM v1's shape)",
        apns: .carried("10; 5 in the background"), fcm: .carried("for Apple devices as for APNs; Android's is FCM's own"))
    case .androidOnly:
      Row(
        rule: "GS-027",
        field: "notification, webpush, or android's notification or data, with nothing that an Apple device shows, and no data",
        apns: .dropped("no push: the result says NothingForPlatform"), fcm: .carried("no apns"))
    case .mdm:
      Row(
        rule: "Apple: MDM commands", field: "apns.headers.apns-push-type (mdm, fileprovider)",
        apns: .carried("no aps where it would be empty"), fcm: .carried("the same header"))
    case .unknownName:
      Row(
        rule: "GS-012", field: "an unknown name, where the application ignores such (unknownKeys)",
        apns: .dropped("unknown"), fcm: .dropped("unknown"))
    }
  }

  public func mapping(_ platform: Platform) -> Mapping { platform == .apns ? row.apns : row.fcm }
}
