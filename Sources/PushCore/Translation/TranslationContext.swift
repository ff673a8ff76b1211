/// What translation needs of one request beyond its body. Times are Unix milliseconds.
public struct TranslationContext: Sendable {
  public var now: Int64
  /// When the request expires: counted from when it was published, not from now (GS-062).
  public var deadline: Int64
  public var messageID: [UInt8]
  /// When the producer published it, or else a worker first saw it: an `android.ttl` beside a `time_to_live` counts from here.
  public var published: Int64
  /// The registry keeps the message's id, so that an acknowledgement by its `mps` object finds it.
  public var isKept = false
  /// The address of the page that has `data.ext`, for pushes that have no room for it; nil where there is none (rule UP-21).
  public var page: [UInt8]?

  /// - Parameter published: nil for just now.
  public init(now: Int64, deadline: Int64, messageID: [UInt8], published: Int64? = nil) {
    self.now = now
    self.deadline = deadline
    self.messageID = messageID
    self.published = published ?? now
  }
}

/// What translation to APNs needs of an app.
public struct APNsSettings: Sendable, Equatable {
  /// The bundle ID (for `mdm` the certificate's UID), without a push type's suffix.
  public let topic: [UInt8]
  /// For a request that names no priority (GS-051).
  public var defaultPriority: Priority
  /// The app's library acknowledges pushes by their `mps` object (rules UP-19, UP-20).
  public var isUPMC: Bool
  /// The topic with its suffix, by push type.
  let topics: [[UInt8]]
  /// The topic has a bundle ID's form; one with any other byte never reaches a header.
  public let isUsable: Bool

  public init(topic: String, defaultPriority: Priority = .normal, isUPMC: Bool = false) {
    self.topic = Array(topic.utf8)
    self.defaultPriority = defaultPriority
    self.isUPMC = isUPMC
    topics = PushType.allCases.map { Array((topic + $0.topicSuffix).utf8) }
    isUsable = TextForm.isPackageName(self.topic)
  }
}

/// What translation to FCM needs of an app.
public struct FCMSettings: Sendable {
  /// For a request in GCM's shape that names no priority (GS-051). FCM itself would take high for notifications.
  public var defaultPriority: Priority
  /// What `mps.appid` says on Apple devices, where the app's library acknowledges pushes by that object (rules UP-19, UP-20); nil where it doesn't.
  public var upmcTopic: [UInt8]?

  public init(defaultPriority: Priority = .normal, upmcTopic: String? = nil) {
    self.defaultPriority = defaultPriority
    self.upmcTopic = upmcTopic.map { Array($0.utf8) }
  }
}
