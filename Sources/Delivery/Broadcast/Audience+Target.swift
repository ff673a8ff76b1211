import DeviceRegistry
import PushCore

extension SendRequest {
  /// The audience that the request addresses; nil for devices.
  var audience: Audience? {
    switch targets {
    case .one(.topic(let name)): .topic(name)
    case .one(.all): .all
    case .one(.user(let id)): .user(id)
    case .one(.group(let key)): .group(key)
    case .condition(let condition): .condition(condition)
    case .one(.apns), .one(.channel), .one(.fcm), .one(.fcmTopics), .one(.webpush), .one(.registration), .one(.invalid), .list:
      nil
    }
  }

  /// The audience's name for comparison with other broadcasts.
  var audienceName: [UInt8] {
    if case .one(let target) = targets, let name = target.registryName { return name }
    return Array("/conditions/".utf8) + document.string(targetNode)
  }
}

extension Target {
  /// The target's name in the registry; nil for providers' tokens, topics and channels.
  var registryName: [UInt8]? {
    switch self {
    case .registration(let id), .group(let id): id
    case .user(let name): Array("/users/".utf8) + name
    case .topic(let name): Array("/topics/".utf8) + name
    case .all: Array("/all".utf8)
    case .apns, .channel, .fcm, .fcmTopics, .webpush, .invalid: nil
    }
  }
}

extension Audience {
  /// A user or group: if one page holds all its devices, the request is sent without a campaign.
  var isSmall: Bool {
    switch self {
    case .user, .group: true
    case .topic, .condition, .all: false
    }
  }

  /// The dead letter's reason when the audience doesn't exist.
  var missing: String {
    switch self {
    case .topic: "to: no such topic"
    case .condition: "condition: none of its topics exists"
    case .all: "to: the application has no devices"
    case .group: "to: no such device group"
    case .user: "to: no such user"
    }
  }
}
