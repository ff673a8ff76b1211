/// The values that a field accepts.
enum FieldRule: Sendable {
  case string
  case boolean
  /// A boolean, or the strings "true" and "false", which GCM clients also send.
  case looseBoolean
  /// An integer from 0 to 2³¹−1, or a string of its digits: `badge` is a string in the GCM reference.
  case count
  case int32
  /// Like ``count``, or `auto` for the device's counter.
  case counter
  /// `#rrggbb`.
  case color
  /// `https://…`, for devices to fetch.
  case secureURL
  /// A string, or Apple's dictionary of `critical`, `name` and `volume`.
  case sound
  /// An array of strings and numbers, or a string that holds such an array.
  case arguments
  case strings
  case oneOf([StaticString])
  /// A protocol-buffers duration: `3.5s`.
  case duration
  case durations
  /// A duration from 0 to four weeks.
  case lifetime
  /// RFC 3339, with at most nine fractional digits.
  case timestamp
  /// A number from 0 to 1.
  case unit
  /// 0, 1 or a boolean.
  case flag
  /// A label of at most 50 characters for FCM's statistics.
  case label
  /// An object whose values are strings.
  case stringMap
  /// `data` in FCM v1's shape: like ``stringMap``, without reserved keys.
  case data
  case object
  case emptyObject
  /// Whole Unix seconds.
  case seconds
  /// A nonempty string.
  case name
  case channel
  /// Any finite number.
  case number
  /// Like ``count``, but a number only: APNs' `badge`.
  case badge
  /// The number 0 or 1, as in APNs.
  case bit
  /// A string, or APNs' dictionary of ``APSAlertKey``.
  case alert
  /// Like ``sound``, with APNs' exact types.
  case criticalSound
  /// A string, or a dictionary of `loc-key` and `loc-args`, as in alerts of live activities.
  case localisedText
  /// `fcm_options`: a label for FCM's statistics, alone, or with an image, or with an https link.
  case labelOptions, imageOptions, linkOptions
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
    case .id: .int32
    }
  }

  /// In `AndroidNotificationV2`.
  var ruleV2: FieldRule {
    switch self {
    case .notificationCount: .int32
    case .image: .secureURL
    default: rule
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
    case .notification, .remoteNotification: .object
    case .backgroundSync: .emptyObject
    case .fcmOptions: .labelOptions
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
  /// The target's fields are also checked elsewhere: an empty one has its own error code.
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
