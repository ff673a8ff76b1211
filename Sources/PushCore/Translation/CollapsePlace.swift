/// What pending requests replace each other for: one device, by one collapse key (GS-033 to GS-035). 128 bits of a SHA-1, the same in every
/// worker.
public struct CollapsePlace: Hashable, Sendable {
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// - Parameter fields: none can be taken for another or for a part of one.
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

/// By which keys a request replaces others, and is replaced, while it waits.
///
/// What counts is what the provider is told: of devices of APNs the collapse id, of those of FCM Android's key. FCM's may be iPhones, so
/// that their requests differ where the collapse id does.
public struct CollapseKeys {
  private let app: [UInt8]
  private let apple: [UInt8]?
  private let android: [UInt8]?
  /// An installation's tokens of different kinds show different things, though one id stands for all of them.
  private let kind: TokenKind
  /// The live activity that the request names itself, in lower case. A collapse id belongs to the token that a push goes to, which is the
  /// activity's own: pushes to it and to its device, or to another activity, don't replace each other.
  private let activity: [UInt8]?

  /// - Parameter app: whose devices they are.
  public init(_ request: borrowing SendRequest, app: [UInt8]) {
    self.app = app
    kind = request.tokenKind
    apple =
      request.apnsHeader(.apnsCollapseId).flatMap { CollapseID.header(request.document.string($0)) } ?? CollapseID.make(request)
    let key = (request.android(.collapseKey) ?? request.collapseKeyNode).map(request.document.string)
    android = key?.isEmpty == true ? nil : key
    activity = request.activityToken
  }

  /// By a provider's token; nil where the request has no key for its platform.
  public func place(_ platform: Platform, token: ArraySlice<UInt8>) -> CollapsePlace? {
    switch platform {
    case .apns: apple.map { place([app[...], [platform.rawValue], token, $0[...]]) }
    case .fcm: android.map { place([app[...], [platform.rawValue], token, $0[...], apple.map { $0[...] }]) }
    }
  }

  /// By what the registry knows devices by, whose platform may not be known yet: a registration, a user, a group. Nil where it would be no
  /// key's on one of them.
  public func place(registration: [UInt8]) -> CollapsePlace? {
    guard let apple, let android else { return nil }
    return place([app[...], [0xFF, kind.rawValue], registration[...], android[...], apple[...]])
  }

  /// Of what goes to a device, with the activity as a last field where there is one.
  private func place(_ fields: [ArraySlice<UInt8>?]) -> CollapsePlace {
    CollapsePlace(activity.map { fields + [$0[...]] } ?? fields)
  }

  /// Of a broadcast: of all devices that it goes to. Nil as for a registration.
  /// - Parameters:
  ///   - audience: as the request names it.
  ///   - sender: whose devices of the audience alone have it; nil where it names none.
  public func place(broadcastTo audience: [UInt8], sender: [UInt8]?) -> CollapsePlace? {
    guard let apple, let android else { return nil }
    return CollapsePlace([
      app[...], [0xFE, kind.rawValue], audience[...], sender.map { $0[...] }, android[...], apple[...],
    ])
  }
}

extension SendRequest {
  /// It names a key for one platform at least.
  public var isCollapsible: Bool {
    collapseKeyNode != nil || blocks != nil && (android(.collapseKey) != nil || apnsHeader(.apnsCollapseId) != nil)
  }
}

/// Which of two requests is the newer one: by the producer's time, then by when a worker first saw it.
public struct CollapseOrder: Comparable, Sendable {
  /// Unix milliseconds.
  public let published: Int64
  /// Unix microseconds by the clock of the worker that saw it first, no two alike there.
  public let arrived: Int64
  /// See ``MessageKey``.
  public let message: Int64

  public init(published: Int64, arrived: Int64, message: Int64) {
    self.published = published
    self.arrived = arrived
    self.message = message
  }

  public static func < (a: Self, b: Self) -> Bool { (a.published, a.arrived, a.message) < (b.published, b.arrived, b.message) }

  /// Copies of one message don't replace each other, whichever came later.
  public func isReplaced(by other: Self) -> Bool { message != other.message && self < other }
}
