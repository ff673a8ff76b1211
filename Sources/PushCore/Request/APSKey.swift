/// The typed keys of `aps` (Apple: "Generating a remote notification"; "Starting and updating Live Activities with ActivityKit
/// push notifications"). APNs accepts wrong types, but the device then drops the push. Unknown keys pass.
public enum APSKey: UInt8, FieldName {
  case alert, badge, sound, threadId, category, contentAvailable, mutableContent, targetContentId
  case interruptionLevel, relevanceScore, filterCriteria
  case timestamp, event, contentState, staleDate, dismissalDate, attributesType, attributes, inputPushChannel, inputPushToken

  public static let acceptsCamelCase = false
  public static let separator = "-"
  static let table = NameTable<APSKey>()

  var rule: FieldRule {
    switch self {
    case .alert: .alert
    case .badge: .badge
    case .sound: .criticalSound
    case .threadId, .category, .targetContentId, .filterCriteria: .string
    case .attributesType: .name
    case .inputPushChannel: .channel
    case .contentAvailable, .mutableContent, .inputPushToken: .bit
    case .interruptionLevel: .oneOf(["passive", "active", "time-sensitive", "critical"])
    case .relevanceScore: .number
    case .timestamp, .staleDate, .dismissalDate: .seconds
    case .event: .oneOf(["start", "update", "end"])
    case .contentState, .attributes: .object
    }
  }
}

/// The keys of `aps.alert`. `sound` and localised title and body are for live activities.
public enum APSAlertKey: UInt8, FieldName {
  case title, subtitle, body, launchImage, titleLocKey, titleLocArgs, subtitleLocKey, subtitleLocArgs, locKey, locArgs, sound

  public static let acceptsCamelCase = false
  public static let separator = "-"
  static let table = NameTable<APSAlertKey>()

  var rule: FieldRule? {
    switch self {
    case .title, .body: .localisedText
    case .subtitle, .launchImage, .titleLocKey, .subtitleLocKey, .locKey: .string
    case .titleLocArgs, .subtitleLocArgs, .locArgs: .strings
    case .sound: .criticalSound
    }
  }
}
