/// What a field's value may be.
enum FieldRule: Sendable {
  /// Any string.
  case string
  /// A boolean of JSON.
  case boolean
  /// A boolean, or the strings "true" and "false", which GCM clients send as well.
  case looseBoolean
  /// An integer from 0 to 2³¹−1, or a string of its digits: `badge` is a string in the GCM reference.
  case count
  /// An integer of 32 bits, as a number.
  case int32
  /// As ``count``, or `auto` for the device's counter.
  case counter
  /// `#rrggbb`.
  case color
  /// The URL of something that a device fetches: `https://…`.
  case secureURL
  /// A string, or Apple's dictionary of `critical`, `name` and `volume`.
  case sound
  /// An array of strings and numbers, or a string that holds such an array.
  case arguments
  /// An array of strings.
  case strings
  /// One of these strings.
  case oneOf([StaticString])
  /// Protocol buffers' duration: `3.5s`.
  case duration
  /// An array of durations.
  case durations
  /// A duration from 0 to four weeks.
  case lifetime
  /// RFC 3339, with up to nine digits of a second.
  case timestamp
  /// A number from 0 to 1.
  case unit
  /// 0, 1 or a boolean.
  case flag
  /// Up to 50 letters of a label for FCM's statistics.
  case label
  /// An object whose values are strings.
  case stringMap
  /// `data` in FCM v1's shape: as ``stringMap``, with no reserved key.
  case data
  /// Any object.
  case object
  /// `{}`.
  case emptyObject
  /// Unix seconds, a whole number.
  case seconds
  /// A string that isn't empty.
  case name
  /// The id of a broadcast channel.
  case channel
  /// Any number that a double can hold.
  case number
  /// As ``count``, only as a number: what APNs takes for `badge`.
  case badge
  /// The number 0 or 1: how APNs spells a flag.
  case bit
  /// A string, or APNs' dictionary of ``APSAlertKey``.
  case alert
  /// As ``sound`` with the exact types of APNs.
  case criticalSound
  /// A string, or a dictionary of `loc-key` and `loc-args`, as alerts of live activities have it.
  case localisedText
  /// `fcm_options`: an object of a label for FCM's statistics and nothing else, of one and an image, of one and an https link.
  case labelOptions, imageOptions, linkOptions
  /// An object with its own fields.
  case lightSettings, lightColor
}

extension NotificationKey {
  var rule: FieldRule {
    switch self {
    case .title, .body, .subtitle, .clickAction, .titleLocKey, .bodyLocKey, .subtitleLocKey, .icon, .tag, .androidChannelId,
      .image, .ticker:
      .string
    case .sound: .sound
    case .badge: .counter
    case .notificationCount: .count
    case .titleLocArgs, .bodyLocArgs, .subtitleLocArgs: .arguments
    case .color: .color
    case .sticky, .localOnly, .defaultSound: .looseBoolean
    case .eventTime: .timestamp
    case .notificationPriority: AndroidNotificationKey.notificationPriority.rule
    case .visibility: AndroidNotificationKey.visibility.rule
    }
  }
}

extension AndroidNotificationKey {
  var rule: FieldRule {
    switch self {
    case .title, .body, .icon, .sound, .tag, .clickAction, .bodyLocKey, .titleLocKey, .channelId, .ticker, .image: .string
    case .color: .color
    case .bodyLocArgs, .titleLocArgs: .strings
    case .sticky, .localOnly, .defaultSound, .defaultVibrateTimings, .defaultLightSettings, .bypassProxyNotification: .boolean
    case .eventTime: .timestamp
    case .notificationPriority:
      .oneOf([
        "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX",
      ])
    case .vibrateTimings: .durations
    case .visibility: .oneOf(["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"])
    case .notificationCount: .count
    case .lightSettings: .lightSettings
    case .proxy: .oneOf(["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"])
    }
  }
}

extension AndroidKey {
  var rule: FieldRule {
    switch self {
    case .collapseKey, .restrictedPackageName: .string
    case .priority: .oneOf(["NORMAL", "HIGH", "normal", "high"])
    case .ttl: .lifetime
    case .data: .data
    case .notification: .object
    case .fcmOptions: .labelOptions
    case .directBootOk, .bandwidthConstrainedOk, .restrictedSatelliteOk: .boolean
    }
  }
}

extension AndroidV2Key {
  var rule: FieldRule {
    switch self {
    case .remoteNotification: .object
    case .backgroundSync: .emptyObject
    case .fcmOptions: .labelOptions
    case .collapseKey, .restrictedPackageName: .string
    case .ttl: .lifetime
    case .data: .data
    case .directBootOk, .bandwidthConstrainedOk, .restrictedSatelliteOk: .boolean
    }
  }
}

extension RemoteNotificationKey {
  var rule: FieldRule {
    switch self {
    case .notification: .object
    case .mutableContent, .useAsV1DataMessage: .boolean
    }
  }
}

extension AndroidNotificationV2Key {
  var rule: FieldRule {
    switch self {
    case .id, .notificationCount: .int32
    case .image: .secureURL
    default: common?.rule ?? .string
    }
  }
}

extension APNsKey {
  var rule: FieldRule {
    switch self {
    case .headers: .stringMap
    case .payload: .object
    case .fcmOptions: .imageOptions
    case .liveActivityToken: .string
    }
  }
}

extension MessageField {
  /// The target's fields are checked apart, since an empty one has its own code.
  var rule: FieldRule {
    switch self {
    case .token, .fid, .topic, .condition, .name: .string
    case .notification, .apns, .android, .androidV2, .webpush: .object
    case .data: .data
    case .fcmOptions: .labelOptions
    }
  }
}

extension WebpushKey {
  var rule: FieldRule {
    switch self {
    case .headers, .data: .stringMap
    case .notification: .object
    case .fcmOptions: .linkOptions
    }
  }
}
