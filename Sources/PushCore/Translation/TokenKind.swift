/// The use of a device's token. An installation has at most one of each kind, but any number for live activities.
public enum TokenKind: UInt8, CaseIterable, Sendable {
  case alert = 0, voip, pushToStart, liveActivity, complication, fileprovider, location, pushtotalk, widgets, controls

  /// The name in registrations and feedback.
  public var name: String {
    switch self {
    case .pushToStart: "push_to_start"
    case .liveActivity: "live_activity"
    default: String(describing: self)
    }
  }

  /// True if the token belongs to live activities: its end says nothing about the app on the device.
  public var isForActivity: Bool { self == .pushToStart || self == .liveActivity }

  /// The kind of token that a push type goes to; nil for `mdm`, whose tokens belong to another kind of app.
  init?(_ type: PushType, startsActivity: @autoclosure () -> Bool) {
    switch type {
    case .alert, .background: self = .alert
    case .voip: self = .voip
    case .liveactivity: self = startsActivity() ? .pushToStart : .liveActivity
    case .complication: self = .complication
    case .fileprovider: self = .fileprovider
    case .location: self = .location
    case .pushtotalk: self = .pushtotalk
    case .widgets: self = .widgets
    case .controls: self = .controls
    case .mdm: return nil
    }
  }
}

extension SendRequest {
  /// The kind of token that the request's push type goes to; `alert` if the request names a live activity's token itself.
  public var tokenKind: TokenKind {
    guard blocks != nil, apns(.liveActivityToken) == nil else { return .alert }
    let aps = APSContent(self)
    let type = apnsHeader(.apnsPushType).flatMap { PushType(word: document.string($0)) } ?? aps.inferredPushType
    return TokenKind(type, startsActivity: aps.startsActivity(document)) ?? .alert
  }
}
