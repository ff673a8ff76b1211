/// Identifies a device and collapse key (GS-033 to GS-035) by 128 bits of a SHA-1, the same in every worker. A newer request
/// replaces a pending request with the same place.
public struct CollapsePlace: Hashable, Sendable {
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// - Parameter fields: hashed with their lengths, so that different fields never give the same bytes.
  fileprivate init(_ fields: [ArraySlice<UInt8>?]) {
    var hash = SHA1()
    for field in fields {
      hash.append(word: field.map { UInt32(truncatingIfNeeded: $0.count) } ?? .max)
      if let field { hash.append(field.span) }
    }
    let (a, b, c, d, _) = hash.finish()
    self.init(high: UInt64(a) << 32 | UInt64(b), low: UInt64(c) << 32 | UInt64(d))
  }
}

/// The keys by which a pending request replaces others and is replaced. They follow the values sent to the provider: the
/// collapse id for APNs, Android's key for FCM, the topic's key for web push. FCM devices may be iPhones, so their places also
/// differ by collapse id.
public struct CollapseKeys {
  private let app: [UInt8]
  private let apple: [UInt8]?
  private let android: [UInt8]?
  private let web: [UInt8]?
  /// The tokens of an installation share its id, but show different things.
  private let kind: TokenKind
  /// The live activity that the request names, in lower case. A collapse id applies to one token. Pushes to the activity don't
  /// replace pushes to its device or to another activity.
  private let activity: [UInt8]?

  public init(_ request: SendRequest, app: [UInt8]) {
    self.app = app
    kind = request.tokenKind
    apple =
      request.apnsHeader(.apnsCollapseId).flatMap { CollapseID.header(request.document.string($0)) } ?? CollapseID.make(request)
    let key = (request.android(.collapseKey) ?? request.collapseKeyNode).map(request.document.string)
    android = key?.isEmpty == true ? nil : key
    web = WebPushHeader.topicKey(request)
    activity = request.activityToken
  }

  /// The place of a provider's token; nil if the request has no key for its platform.
  public func place(_ platform: Platform, token: ArraySlice<UInt8>) -> CollapsePlace? {
    switch platform {
    case .apns: apple.map { place([app[...], [platform.rawValue], token, $0[...]]) }
    case .fcm: android.map { place([app[...], [platform.rawValue], token, $0[...], apple.map { $0[...] }]) }
    case .webpush:
      web.map { place([app[...], [platform.rawValue], WebPushSubscription.endpoint(of: token), $0[...]]) }
    }
  }

  /// The place of a registration, user or group of unknown platform. Nil unless the request has keys for both phones.
  public func place(registration: [UInt8]) -> CollapsePlace? {
    keysOfAll.map { place([app[...], [0xFF, kind.rawValue], registration[...]] + $0) }
  }

  /// A browser's key is named only if it differs from Android's, so that the place of most requests is that of earlier builds.
  private var keysOfAll: [ArraySlice<UInt8>?]? {
    guard let apple, let android else { return nil }
    let phones = [android[...], apple[...]]
    return if let web, web != android { phones + [web[...]] } else { phones }
  }

  /// The place of a delivery to a device. The activity, if any, is the last field.
  private func place(_ fields: [ArraySlice<UInt8>?]) -> CollapsePlace {
    CollapsePlace(activity.map { fields + [$0[...]] } ?? fields)
  }

  /// The place of a broadcast. Nil unless the request has keys for both phones.
  /// - Parameter sender: limits the audience to this sender's devices; nil for all.
  public func place(broadcastTo audience: [UInt8], sender: [UInt8]?) -> CollapsePlace? {
    keysOfAll.map { CollapsePlace([app[...], [0xFE, kind.rawValue], audience[...], sender.map { $0[...] }] + $0) }
  }
}

extension SendRequest {
  public var isCollapsible: Bool {
    if collapseKeyNode != nil { return true }
    return blocks != nil
      && (android(.collapseKey) != nil || apnsHeader(.apnsCollapseId) != nil || WebPushHeader.topicKey(self) != nil)
  }
}

/// Orders requests by the producer's time, then by the time at which a worker first saw them.
public struct CollapseOrder: Comparable, Sendable {
  /// Unix milliseconds.
  public let published: Int64
  /// Unix microseconds by the clock of the worker that saw the request first; unique in that worker.
  public let arrived: Int64
  /// See ``MessageKey``.
  public let message: Int64

  public init(published: Int64, arrived: Int64, message: Int64) {
    self.published = published
    self.arrived = arrived
    self.message = message
  }

  public static func < (a: Self, b: Self) -> Bool { (a.published, a.arrived, a.message) < (b.published, b.arrived, b.message) }

  /// Copies of one message never replace each other.
  public func isReplaced(by other: Self) -> Bool { message != other.message && self < other }
}
