/// What a token of a device is for. An installation may hold one of each, and of live activities any number.
public enum TokenKind: UInt8, CaseIterable, Sendable {
  case alert = 0, voip, pushToStart, liveActivity, complication, fileprovider, location, pushtotalk, widgets, controls

  /// As registrations and feedback spell it.
  public var name: String {
    switch self {
    case .pushToStart: "push_to_start"
    case .liveActivity: "live_activity"
    default: String(describing: self)
    }
  }

  /// It ends with an activity or is replaced when one has started, and says nothing of the app on its device.
  public var isForActivity: Bool { self == .pushToStart || self == .liveActivity }

  /// What a push type is sent to; nil for `mdm`, whose tokens are of another kind of application.
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
  /// What kind of token its push type goes to; a token that it names itself takes the place of the device's own.
  public var tokenKind: TokenKind {
    guard blocks != nil, apns(.liveActivityToken) == nil else { return .alert }
    let aps = APSContent(self)
    let type = apnsHeader(.apnsPushType).flatMap { PushType(word: document.string($0)) } ?? aps.inferredPushType
    return TokenKind(type, startsActivity: aps.startsActivity(document)) ?? .alert
  }
}
