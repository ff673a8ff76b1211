import Wire

/// A push provider.
public enum Platform: UInt8, CaseIterable, Sendable {
  case apns, fcm, webpush

  /// The name for people.
  public var label: String {
    switch self {
    case .apns: "APNs"
    case .fcm: "FCM"
    case .webpush: "Web push"
    }
  }
  /// The name in messages.
  public var word: String { Self.words[Int(rawValue)] }
  private static let words = allCases.map { String(describing: $0) }

  /// The part of a token that distinguishes the device from others of its application: for web push, the endpoint.
  public func identity(of token: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    self == .webpush ? WebPushSubscription.endpoint(of: token) : token
  }
}

/// Targets of providers are slices of the request's text, so that a device costs no copy.
public enum Target: Equatable, Sendable {
  /// Lower-case hexadecimal digits.
  case apns(token: ArraySlice<UInt8>)
  /// A registration token of FCM, or an installation id as ``FCMAddress`` spells it.
  case fcm(token: ArraySlice<UInt8>)
  /// A browser's subscription, as ``WebPushSubscription`` makes it a token.
  case webpush(token: ArraySlice<UInt8>)
  /// One of FCM's own topics, or a condition over them, as ``FCMAddress`` spells it.
  case fcmTopics(ArraySlice<UInt8>)
  /// A broadcast channel of APNs, by the id that APNs issued.
  case channel(ArraySlice<UInt8>)
  /// A topic's name, without `/topics/`.
  case topic([UInt8])
  /// Every device registered for the app.
  case all
  /// A user id, without `/users/`: all devices registered for the user.
  case user([UInt8])
  /// A device group: a notification key that the registry issued.
  case group([UInt8])
  /// One device: a registration that the registry issued.
  case registration([UInt8])
  /// An undeliverable entry of `registration_ids`; the other entries are still delivered.
  case invalid(Rejection)

  /// Classifies a target by its form alone, without a look-up:
  ///
  /// | Form | Target |
  /// |---|---|
  /// | `/topics/<name>` | topic |
  /// | `/users/<id>` | user, by the id as it is or percent-encoded |
  /// | `/all` | all devices of the application |
  /// | `apns:<hex>` | APNs token, an even number of 2 to 200 digits |
  /// | `apns-channel:<id>` | broadcast channel of APNs, 1 to 256 characters of base64 |
  /// | `fcm:<token>` | FCM token |
  /// | `webpush:<text>` | web push; the text is base64url of the browser's `PushSubscription` object |
  /// | `fid:<id>` | Firebase installation: 22 of `A-Z a-z 0-9 _ -`, the first c, d, e or f |
  /// | `fcm:/topics/<name>`, `fcm:'a' in topics` | topics that FCM keeps, or a condition over them |
  /// | `pf1r~…`, `pf1g~…` | ``RegistryID`` |
  /// | 64 to 200 hexadecimal digits | APNs token; an odd number is refused |
  /// | anything else | FCM token: `[A-Za-z0-9_:.%-]`, up to 4,096 bytes, no `..`, `%2e`, `%2f` |
  ///
  /// Other forms are `InvalidRegistration`. No control, space, slash, `?`, `#` or non-ASCII byte of a target ever reaches a
  /// path or a header. A user id may have these bytes; it reaches neither.
  public static func classify(_ text: [UInt8]) -> Result<Target, Rejection> { classify(text[...]) }

  static func classify(_ text: ArraySlice<UInt8>) -> Result<Target, Rejection> {
    // APNs tokens without a prefix. No form with a prefix has only hexadecimal digits.
    guard text.count >= 64, text.count <= 200, let token = lowerHex(text) else { return named(text) }
    guard text.count % 2 == 0 else { return refused("an APNs token with an odd number of digits") }
    return .success(.apns(token: token))
  }

  /// A target with a prefix, or a token of FCM.
  private static func named(_ text: ArraySlice<UInt8>) -> Result<Target, Rejection> {
    switch text.first {
    case UInt8(ascii: "/"):
      return path(Array(text))
    case UInt8(ascii: "a") where Bytes.starts(text.span, with: apnsPrefix):
      let digits = text.dropFirst(apnsPrefix.utf8.count)
      guard (2...200).contains(digits.count), digits.count % 2 == 0, let token = lowerHex(digits) else {
        return refused("expected an even number of 2 to 200 hexadecimal digits after apns:")
      }
      return .success(.apns(token: token))
    case UInt8(ascii: "a") where Bytes.starts(text.span, with: channelPrefix):
      let id = text.dropFirst(channelPrefix.utf8.count)
      guard TextForm.isChannelID(id) else {
        return refused("expected 1 to 256 characters of base64 after apns-channel:")
      }
      return .success(.channel(id))
    case UInt8(ascii: "f") where Bytes.starts(text.span, with: fcmPrefix):
      return prefixedFCM(text.dropFirst(fcmPrefix.utf8.count))
    case UInt8(ascii: "f") where text.starts(with: FCMAddress.installationPrefix):
      return installation(text.dropFirst(FCMAddress.installationPrefix.count))
    case UInt8(ascii: "w") where Bytes.starts(text.span, with: webPushPrefix):
      return subscription(text.dropFirst(webPushPrefix.utf8.count))
    case UInt8(ascii: "p"):
      let id = Array(text)
      if let kind = RegistryID.kind(of: id) { return .success(kind == .registration ? .registration(id) : .group(id)) }
    default: break
    }
    return fcm(text)
  }

  private static let channelPrefix = "apns-channel:"
  private static let apnsPrefix = "apns:"
  private static let fcmPrefix = "fcm:"
  private static let webPushPrefix = "webpush:"

  /// - Parameter text: without `webpush:`.
  private static func subscription(_ text: ArraySlice<UInt8>) -> Result<Target, Rejection> {
    guard let object = Base64URL.decode(text, isLenient: true), let document = try? JSONDocument(object) else {
      return refused("expected base64url of a subscription's JSON object after webpush:")
    }
    do throws(Rejection) {
      return .success(.webpush(token: try WebPushSubscription(document, document.root).token()[...]))
    } catch {
      return .failure(error)
    }
  }

  private static func path(_ text: [UInt8]) -> Result<Target, Rejection> {
    if text.starts(with: "/topics/".utf8) {
      guard TextForm.isTopicName(text[8...]) else {
        return refused("a topic's name has 1 to 899 of the characters a-z A-Z 0-9 - _ . ~ %")
      }
      return .success(.topic(Array(text[8...])))
    }
    if text.elementsEqual("/all".utf8) { return .success(.all) }
    guard text.starts(with: "/users/".utf8) else { return refused("expected /topics/<name>, /users/<id> or /all") }
    guard let user = PercentEncoding.decode(text[7...], keepsOther: true), TextForm.isUserID(user[...]) else {
      return refused(TextForm.userIDRule)
    }
    return .success(.user(user))
  }

  /// - Parameter text: without `fcm:`.
  private static func prefixedFCM(_ text: ArraySlice<UInt8>) -> Result<Target, Rejection> {
    switch FCMAddress(text) {
    case .token: return fcm(text)
    case .installation: return refused("fid: after fcm:, expected an installation's id as fid:<id>")
    case .topic:
      guard text.starts(with: FCMAddress.topicPrefix), TextForm.isTopicName(text.dropFirst(8), atMost: 900) else {
        return refused("expected /topics/ and a name of 1 to 900 of the characters a-z A-Z 0-9 - _ . ~ % after fcm:")
      }
    case .condition:
      do throws(ConditionError) { _ = try Condition.parse(Array(text)) } catch {
        return refused("\(error.reason) (byte \(error.offset) of the condition)")
      }
    }
    return .success(.fcmTopics(text))
  }

  /// - Parameter id: a Firebase installation id (FID) without a prefix.
  static func installation(_ id: ArraySlice<UInt8>) -> Result<Target, Rejection> {
    guard TextForm.isInstallationID(id) else {
      return refused("an installation's id has 22 of the characters A-Z a-z 0-9 _ -, the first of them c, d, e or f")
    }
    return .success(.fcm(token: FCMAddress.installationPrefix[...] + id))
  }

  private static func fcm(_ token: ArraySlice<UInt8>) -> Result<Target, Rejection> {
    guard !token.isEmpty else { return refused("an empty token") }
    guard token.count <= 4096 else { return refused("a token of \(token.count) bytes, at most 4096 allowed") }
    if !Bytes.areUsualInFCM(token.span) {
      guard token.allSatisfy({ Bytes.isUsualInFCM($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "%") }) else {
        return refused("a token has a byte beyond a-z A-Z 0-9 _ : . % -")
      }
      if climbs(token) { return refused("a token with .. or an escaped dot or slash") }
    }
    return .success(.fcm(token: token))
  }

  /// True for `..`, `%2e` or `%2f`, which no token has but path traversal does.
  private static func climbs(_ token: ArraySlice<UInt8>) -> Bool {
    for at in token.indices.dropLast() {
      if token[at] == UInt8(ascii: "."), token[at + 1] == UInt8(ascii: ".") { return true }
      guard token[at] == UInt8(ascii: "%"), token[at + 1] == UInt8(ascii: "2"), at + 2 < token.endIndex else { continue }
      if token[at + 2] | 0x20 == UInt8(ascii: "e") || token[at + 2] | 0x20 == UInt8(ascii: "f") { return true }
    }
    return false
  }

  /// Hexadecimal digits in lower case; nil if other bytes are among them.
  private static func lowerHex(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    if Bytes.areLowerHex(text.span) { return text }
    return text.allSatisfy(Bytes.isHex) ? text.map { Bytes.isDigit($0) ? $0 : $0 | 0x20 }[...] : nil
  }

  private static func refused(_ rule: String) -> Result<Target, Rejection> {
    .failure(Rejection(.invalidRegistration, rule))
  }
}

public enum Targets: Equatable, Sendable {
  case one(Target)
  /// `registration_ids` in the order of the request, with duplicates: results are matched by index.
  case list([Target])
  case condition(Condition)

  /// The targets that the request names; empty for a condition.
  public var named: [Target] {
    switch self {
    case .one(let target): [target]
    case .list(let targets): targets
    case .condition: []
    }
  }
}
