/// `apns-push-type` and its topic suffix and limits (Apple: "Sending notification requests to APNs", push types).
public enum PushType: UInt8, CaseIterable, Sendable {
  case alert, background, voip, complication, fileprovider, mdm, location, liveactivity, pushtotalk, widgets, controls

  public var word: [UInt8] { Self.words[Int(rawValue)] }

  /// The suffix of the bundle ID in the topic. Empty for `mdm`: its topic is the UID of the certificate's subject.
  public var topicSuffix: String {
    switch self {
    case .alert, .background, .mdm: ""
    case .voip: ".voip"
    case .complication: ".complication"
    case .fileprovider: ".pushkit.fileprovider"
    case .location: ".location-query"
    case .liveactivity: ".push-type.liveactivity"
    case .pushtotalk: ".voip-ptt"
    case .widgets: ".push-type.widgets"
    case .controls: ".push-type.controls"
    }
  }

  public var payloadLimit: Int { self == .voip ? 5120 : 4096 }

  /// True if an empty `aps` is left out (Apple: "Sending MDM commands to a device", "Using push notifications to signal
  /// changes").
  var needsNoAPS: Bool { self == .mdm || self == .fileprovider }

  init?(word: [UInt8]) {
    guard let index = Self.words.firstIndex(of: word) else { return nil }
    self.init(rawValue: UInt8(index))
  }

  private static let words = allCases.map { Array(String(describing: $0).utf8) }
}
