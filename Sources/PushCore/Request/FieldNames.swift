/// The top level of a request in GCM's shape (server reference, JSON fields), with the override blocks.
public enum RequestField: UInt8, FieldName {
  case to, registrationIds, condition, notificationKey
  case priority, collapseKey, timeToLive, delayWhileIdle, contentAvailable, mutableContent, restrictedPackageName, dryRun
  case notification, data
  case apns, android, androidV2, webpush

  public static let acceptsCamelCase = false
  static let table = NameTable<RequestField>()
}

public enum EnvelopeField: UInt8, FieldName {
  case message, validateOnly

  static let table = NameTable<EnvelopeField>()
}

/// FCM v1's `message`. `name` is accepted without effect: it is output only.
public enum MessageField: UInt8, FieldName {
  case token, fid, topic, condition
  case name, notification, data, apns, android, androidV2, webpush, fcmOptions

  static let table = NameTable<MessageField>()
}

/// `notification` in GCM's shape: the keys of the server reference. The keys from `image` on are newer and mean the same as in
/// FCM v1's `android.notification`.
public enum NotificationKey: UInt8, FieldName {
  case title, body, subtitle, sound, badge, clickAction
  case titleLocKey, titleLocArgs, bodyLocKey, bodyLocArgs, subtitleLocKey, subtitleLocArgs
  case icon, tag, color, androidChannelId
  case image, ticker, sticky, localOnly, eventTime, notificationPriority, visibility, notificationCount, defaultSound

  public static let acceptsCamelCase = false
  static let table = NameTable<NotificationKey>()
  /// FCM v1's `message.notification`.
  static let plainTable = NameTable<NotificationKey>([.title, .body, .image])
}

/// FCM v1's `AndroidConfig`, and its alternative `AndroidConfigV2`, which has no priority: the kind of message decides the
/// urgency.
public enum AndroidKey: UInt8, FieldName {
  case collapseKey, priority, ttl, restrictedPackageName, data, notification, remoteNotification, backgroundSync, fcmOptions
  case directBootOk, bandwidthConstrainedOk, restrictedSatelliteOk

  static let table = NameTable(allCases.filter { $0 != .remoteNotification && $0 != .backgroundSync })
  static let tableV2 = NameTable(allCases.filter { $0 != .priority && $0 != .notification })
}

/// FCM v1's `AndroidNotification` and `AndroidNotificationV2`.
public enum AndroidNotificationKey: UInt8, FieldName {
  case title, body, icon, color, sound, tag, clickAction
  case bodyLocKey, bodyLocArgs, titleLocKey, titleLocArgs
  case channelId, ticker, sticky, eventTime, localOnly, notificationPriority
  case defaultSound, defaultVibrateTimings, defaultLightSettings, vibrateTimings
  case visibility, notificationCount, lightSettings, image, bypassProxyNotification, proxy, id

  static let table = NameTable(allCases.filter { $0 != .id })
  static let tableV2 = NameTable(allCases.filter { $0 != .bypassProxyNotification && $0 != .proxy })
}

/// The `remote_notification` of `AndroidConfigV2`: shown, or handed to the app, at once.
public enum RemoteNotificationKey: UInt8, FieldName {
  case notification, mutableContent, useAsV1DataMessage

  static let table = NameTable<RemoteNotificationKey>()
}

enum LightSettingsKey: UInt8, FieldName {
  case color, lightOnDuration, lightOffDuration

  static let table = NameTable<LightSettingsKey>()
}

/// The color of ``LightSettingsKey``: each part from 0 to 1.
enum LightColorKey: UInt8, FieldName {
  case red, green, blue, alpha

  static let table = NameTable<LightColorKey>()
}

/// FCM v1's `ApnsConfig`.
public enum APNsKey: UInt8, FieldName {
  case headers, payload, fcmOptions, liveActivityToken

  static let table = NameTable<APNsKey>()
}

/// The header fields that `apns.headers` may set (Apple: "Sending notification requests to APNs", table of header fields).
/// Excludes authorization, and channels, which have their own endpoint.
public enum APNsHeader: UInt8, FieldName {
  case apnsPushType, apnsTopic, apnsId, apnsExpiration, apnsPriority, apnsCollapseId

  public static let acceptsCamelCase = false
  public static let separator = "-"
  static let table = NameTable<APNsHeader>()
}

/// FCM v1's `WebpushConfig`.
public enum WebpushKey: UInt8, FieldName {
  case headers, data, notification, fcmOptions

  static let table = NameTable<WebpushKey>()
}

enum OptionsKey: UInt8, FieldName {
  case analyticsLabel, image, link

  /// FCM v1's `FcmOptions` and `AndroidFcmOptions`.
  static let labelTable = NameTable<OptionsKey>([.analyticsLabel])
  /// FCM v1's `ApnsFcmOptions`.
  static let imageTable = NameTable<OptionsKey>([.analyticsLabel, .image])
  /// FCM v1's `WebpushFcmOptions`.
  static let linkTable = NameTable<OptionsKey>([.analyticsLabel, .link])
}

/// `sound` as a dictionary (Apple: "Generating a remote notification").
enum SoundKey: UInt8, FieldName {
  case critical, name, volume

  static let acceptsCamelCase = false
  static let table = NameTable<SoundKey>()
}
