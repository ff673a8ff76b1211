import PushCore

/// Why a token in a subscribe change fails (IID batch errors).
public enum SubscriptionError: String, Sendable {
  case notFound = "NOT_FOUND"
  case invalidArgument = "INVALID_ARGUMENT"
  case tooManyTopics = "TOO_MANY_TOPICS"
}

/// Why a change is refused. Uses GCM's and FCM's own texts if there are any.
public enum ChangeError: String, CaseIterable, Sendable {
  case invalidJSON = "InvalidJSON"
  case notAllowed = "NotAllowed"
  case invalidParameters = "InvalidParameters"
  case invalidRegistration = "InvalidRegistration"
  case notRegistered = "NotRegistered"
  case tooManySenders = "TooManySenders"
  case tooManyDevices = "TooManyDevices"
  case tooManyTopics = "TOO_MANY_TOPICS"
  case tooManyMembers = "TooManyMembers"
  case notificationKeyExists = "notification_key already exists"
  case notificationKeyNotFound = "notification_key not found"
  case nameMismatch = "notification_key_name doesn't match the group name of the notification_key"
  case noValidRegistrationIDs = "no valid registration ids"
  case groupNotFound = "group not found"
  case noUser = "no user bound"
}

public struct ReplacedToken: Equatable, Sendable {
  public var platform: Platform
  public var token: [UInt8]
  public var newToken: [UInt8]
  public var environment: DeviceEnvironment
  public var sender: [UInt8]?
  public var installation: [UInt8]?
  public var user: [UInt8]?
  public var kind: TokenKind
}

public enum ChangeAnswer: Equatable, Sendable {
  case registration([UInt8])
  /// A registration whose token has replaced others, in this order.
  case moved([UInt8], [ReplacedToken])
  case done
  /// One entry per token; nil for success.
  case results([SubscriptionError?])
  /// `failed` has the indexes of entries that name no device. They are not members.
  case notificationKey([UInt8], failed: [Int])
  case refused(ChangeError, reason: String)

  public var registration: [UInt8]? {
    switch self {
    case .registration(let id), .moved(let id, _): id
    case .done, .results, .notificationKey, .refused: nil
    }
  }

  /// The part of the change that had no effect, if any: all of it, or entries of its list.
  public var failure: ChangeRefusal? {
    switch self {
    case .refused(let error, let reason): return ChangeRefusal(error, reason)
    case .results(let results):
      let failed = results.indices.filter { results[$0] != nil }
      guard let first = failed.first, let error = results[first] else { return nil }
      return ChangeRefusal(.invalidRegistration, "tokens[\(first)]: \(error.rawValue)" + Self.more(failed.count))
    case .notificationKey(_, let failed):
      guard let first = failed.first else { return nil }
      return ChangeRefusal(.invalidRegistration, "member \(first + 1): no such device is registered" + Self.more(failed.count))
    case .registration, .moved, .done: return nil
    }
  }

  private static func more(_ count: Int) -> String { count > 1 ? ", and \(count - 1) more" : "" }

  /// The answer as a message (docs/asyncapi.yaml).
  public var json: [UInt8] {
    let answer: JSONObject =
      switch self {
      case .registration(let id), .moved(let id, _): ["registration": id]
      case .done: [:]
      case .results(let results): ["results": results.map { ["error": JSONOptional($0?.rawValue)] as JSONObject }]
      case .notificationKey(let key, let failed):
        ["notification_key": key, "failed_indexes": JSONOptional(failed.isEmpty ? nil : failed)]
      case .refused(let error, let reason): ["error": error.rawValue, "reason": reason]
      }
    return answer.line
  }
}
