/// The facts about a request, beyond its body, that translation needs. Times are Unix milliseconds.
public struct TranslationContext: Sendable {
  public var now: Int64
  /// The request's expiration, counted from its publication (GS-062).
  public var deadline: Int64
  public var messageID: [UInt8]
  /// When the producer published the request, or else when a worker first saw it. `android.ttl` may count from it.
  public var published: Int64
  /// True if the registry keeps the message's id, so that an acknowledgement with the `mps` object finds it.
  public var isKept = false
  /// The address of the page with `data.ext`, for pushes without room for it; nil if there is no page (rule UP-21).
  public var page: [UInt8]?

  /// - Parameter published: nil for `now`.
  public init(now: Int64, deadline: Int64, messageID: [UInt8], published: Int64? = nil) {
    self.now = now
    self.deadline = deadline
    self.messageID = messageID
    self.published = published ?? now
  }

  /// The end of a platform's own lifetime, which wins over the request's `common` one. It doesn't extend an earlier expiration of
  /// the message.
  /// - Parameter own: seconds from publishing, like `common`.
  func deadline(_ own: Int, insteadOf common: Int) -> Int64 {
    let isBounded = deadline < published + Int64(common) * 1000
    let wanted = published + Int64(own) * 1000
    return isBounded ? min(deadline, wanted) : wanted
  }
}

public struct APNsSettings: Sendable, Equatable {
  /// The bundle ID (for `mdm` the certificate's UID), without a push type's suffix.
  public var topic: [UInt8] { topics[Int(PushType.alert.rawValue)] }
  /// For a request that names no priority (GS-051).
  public var defaultPriority: Priority
  /// True if the app's library acknowledges pushes with their `mps` object (rules UP-19, UP-20).
  public var isUPMC: Bool
  let topics: [[UInt8]]
  /// True if the topic has the form of a bundle ID. Other topics never reach a header.
  public let isUsable: Bool

  public init(topic: String, defaultPriority: Priority = .normal, isUPMC: Bool = false) {
    self.defaultPriority = defaultPriority
    self.isUPMC = isUPMC
    topics = PushType.allCases.map { Array((topic + $0.topicSuffix).utf8) }
    isUsable = TextForm.isPackageName(Array(topic.utf8))
  }
}

/// A class, so that a copy is one reference.
public final class FCMSettings: Sendable {
  /// For a request in GCM's shape that names no priority (GS-051). FCM's own default for notifications is high.
  public let defaultPriority: Priority
  /// The `mps.appid` on Apple devices; nil if the app's library doesn't acknowledge pushes with that object (rules UP-19,
  /// UP-20).
  public let upmcTopic: [UInt8]?
  /// The application's id, and the Android package that a request means by it; nil if it isn't known.
  let package: (ofApp: [UInt8], name: [UInt8])?

  public init(
    defaultPriority: Priority = .normal, upmcTopic: String? = nil, package: (ofApp: String, name: String)? = nil
  ) {
    self.defaultPriority = defaultPriority
    self.upmcTopic = upmcTopic.map { Array($0.utf8) }
    self.package = package.map { (Array($0.ofApp.utf8), Array($0.name.utf8)) }
  }
}
