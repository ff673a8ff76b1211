/// The fields of a send request in FCM's v1 discovery document.
enum FCMSchema {
  indirect enum Kind: Sendable {
    case string, bool, integer, number
    /// `"3.5s"`.
    case duration
    /// RFC 3339.
    case timestamp
    case word([String])
    case stringMap
    case list(Kind)
    /// Any JSON object.
    case free
    case object([String: Kind])
  }

  static let request: Kind = .object(["validate_only": .bool, "message": .object(message)])

  static let message: [String: Kind] = [
    "name": .string, "data": .stringMap, "notification": .object(["title": .string, "body": .string, "image": .string]),
    "android": .object(android), "android_v2": .object(androidV2), "webpush": .object(webpush), "apns": .object(apns),
    "fcm_options": .object(["analytics_label": .string]), "token": .string, "fid": .string, "topic": .string,
    "condition": .string,
  ]

  static let android: [String: Kind] = [
    "collapse_key": .string, "priority": .word(["NORMAL", "HIGH", "normal", "high"]), "ttl": .duration,
    "restricted_package_name": .string, "data": .stringMap, "notification": .object(androidNotification),
    "fcm_options": .object(["analytics_label": .string]), "direct_boot_ok": .bool, "bandwidth_constrained_ok": .bool,
    "restricted_satellite_ok": .bool,
  ]

  static let androidV2: [String: Kind] = [
    "collapse_key": .string, "ttl": .duration, "restricted_package_name": .string, "data": .stringMap,
    "remote_notification": .object([
      "notification": .object(androidNotificationV2), "mutable_content": .bool, "use_as_v1_data_message": .bool,
    ]),
    "background_sync": .object([:]), "fcm_options": .object(["analytics_label": .string]), "direct_boot_ok": .bool,
    "bandwidth_constrained_ok": .bool, "restricted_satellite_ok": .bool,
  ]

  static let androidNotificationV2 = androidNotification.filter { $0.key != "proxy" && $0.key != "bypass_proxy_notification" }
    .merging(["id": .integer]) { first, _ in first }

  static let androidNotification: [String: Kind] = [
    "title": .string, "body": .string, "icon": .string, "color": .string, "sound": .string, "tag": .string,
    "click_action": .string, "body_loc_key": .string, "body_loc_args": .list(.string), "title_loc_key": .string,
    "title_loc_args": .list(.string), "channel_id": .string, "ticker": .string, "sticky": .bool, "event_time": .timestamp,
    "local_only": .bool,
    "notification_priority": .word(
      ["PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX"]),
    "default_sound": .bool, "default_vibrate_timings": .bool, "default_light_settings": .bool,
    "vibrate_timings": .list(.duration), "visibility": .word(["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"]),
    "notification_count": .integer, "light_settings": .object(lightSettings), "image": .string,
    "bypass_proxy_notification": .bool,
    "proxy": .word(["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
  ]

  static let lightSettings: [String: Kind] = [
    "color": .object(["red": .number, "green": .number, "blue": .number, "alpha": .number]), "light_on_duration": .duration,
    "light_off_duration": .duration,
  ]

  static let apns: [String: Kind] = [
    "headers": .stringMap, "payload": .free, "fcm_options": .object(["analytics_label": .string, "image": .string]),
    "live_activity_token": .string,
  ]

  static let webpush: [String: Kind] = [
    "headers": .stringMap, "data": .stringMap, "notification": .free,
    "fcm_options": .object(["link": .string, "analytics_label": .string]),
  ]
}
