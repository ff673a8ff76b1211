/// The keys of `aps` whose types are known (Apple: "Generating a remote notification"; "Starting and updating Live Activities with ActivityKit
/// push notifications"). APNs takes a payload with a wrongly typed one and the device drops it without a word, so these are checked; other
/// keys pass, since Apple adds some every year.
public enum APSKey: UInt8, FieldName {
  case alert, badge, sound, threadId, category, contentAvailable, mutableContent, targetContentId
  case interruptionLevel, relevanceScore, filterCriteria
  case timestamp, event, contentState, staleDate, dismissalDate, attributesType, attributes, inputPushChannel, inputPushToken

  public static let acceptsCamelCase = false
  public var wireName: String { spelling(String(describing: self), separator: "-") }
  static let table = NameTable<APSKey>(separator: "-")

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

/// The keys of `aps.alert`; of them `sound` belongs to live activities, whose title and body may be localised in place.
public enum APSAlertKey: UInt8, FieldName {
  case title, subtitle, body, launchImage, titleLocKey, titleLocArgs, subtitleLocKey, subtitleLocArgs, locKey, locArgs, sound

  public static let acceptsCamelCase = false
  public var wireName: String { spelling(String(describing: self), separator: "-") }
  static let table = NameTable<APSAlertKey>(separator: "-")

  var rule: FieldRule? {
    switch self {
    case .title, .body: .localisedText
    case .subtitle, .launchImage, .titleLocKey, .subtitleLocKey, .locKey: .string
    case .titleLocArgs, .subtitleLocArgs, .locArgs: .strings
    case .sound: .criticalSound
    }
  }
}
