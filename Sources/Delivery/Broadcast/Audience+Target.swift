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
    case .one(.apns), .one(.channel), .one(.fcm), .one(.fcmTopics), .one(.registration), .one(.invalid), .list: nil
    }
  }
}

extension Target {
  /// The name under which the registry looks it up; nil for what a provider gave out.
  var registryName: [UInt8]? {
    switch self {
    case .registration(let id), .group(let id): id
    case .user(let name): Array("/users/".utf8) + name
    case .topic(let name): Array("/topics/".utf8) + name
    case .all: Array("/all".utf8)
    case .apns, .channel, .fcm, .fcmTopics, .invalid: nil
    }
  }
}

extension Audience {
  /// Small by nature: sent within its request, without a campaign, as long as one page holds it.
  var isSmall: Bool {
    switch self {
    case .user, .group: true
    case .topic, .condition, .all: false
    }
  }

  /// By which two broadcasts go to the same one.
  /// - Parameter target: what the request says.
  func name(_ target: @autoclosure () -> [UInt8]) -> [UInt8] {
    switch self {
    case .topic(let name): Array("/topics/".utf8) + name
    case .user(let id): Array("/users/".utf8) + id
    case .group(let key): key
    case .all: Array("/all".utf8)
    case .condition: Array("/conditions/".utf8) + target()
    }
  }

  /// What a missing one is called in a dead letter.
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
