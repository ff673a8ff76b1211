/// `apns-push-type` and what hangs on it (Apple: "Sending notification requests to APNs", push types).
public enum PushType: UInt8, CaseIterable, Sendable {
  case alert, background, voip, complication, fileprovider, mdm, location, liveactivity, pushtotalk, widgets, controls

  /// The word on the wire.
  public var word: [UInt8] { Self.words[Int(rawValue)] }

  /// What is appended to the bundle ID. For `mdm` the app's topic is the UID of its certificate's subject, with nothing appended.
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

  /// Bytes of payload that APNs takes (Apple: "Generating a remote notification").
  public var payloadLimit: Int { self == .voip ? 5120 : 4096 }

  /// `aps` is left out where it would be empty (Apple: "Sending MDM commands to a device", "Using push notifications to signal changes").
  var needsNoAPS: Bool { self == .mdm || self == .fileprovider }

  /// The type that a validated `apns-push-type` names.
  init?(word: [UInt8]) {
    guard let index = Self.words.firstIndex(of: word) else { return nil }
    self.init(rawValue: UInt8(index))
  }

  private static let words = allCases.map { Array(String(describing: $0).utf8) }
}
