/// How a whole request ended, in GCM's shape: the body of a message to `reply_to` and on `push.results`.
public struct SendResult: Sendable {
  /// How one target ended.
  public enum Target: Sendable, Equatable {
    /// Taken by the provider under this id (`apns-id` or FCM's name); `registration` is the newer id to use from now on, `uniqueID` what
    /// APNs' sandbox calls the push in its log.
    case accepted(id: [UInt8], registration: [UInt8]? = nil, uniqueID: [UInt8]? = nil)
    /// With what its dead letter says of it, where it has one: producers may not read dead letters.
    case failed(PushError, reason: String? = nil)
  }

  public var messageID: [UInt8]
  public var app: [UInt8]
  /// In the order of the request's targets, as many as they.
  public var targets: [Target]

  public init(messageID: [UInt8], app: [UInt8], targets: [Target]) {
    self.messageID = messageID
    self.app = app
    self.targets = targets
  }

  public var success: Int { targets.reduce(0) { if case .accepted = $1 { $0 + 1 } else { $0 } } }
  public var failure: Int { targets.count - success }
  public var canonicalIDs: Int { targets.reduce(0) { if case .accepted(_, .some, _) = $1 { $0 + 1 } else { $0 } } }

  /// `{"message_id":…,"app":…,"success":1,"failure":1,"canonical_ids":0,"results":[{"message_id":…},{"error":…,"reason":…}]}`.
  ///
  /// `report` is what a dry run adds: `,"report":{"apns":[…],"fcm":[…]}`.
  public func json(report: DryRunReport? = nil) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(160 + 64 * targets.count)
    body.append(contentsOf: #"{"message_id":"#.utf8)
    body.appendSafeJSONString(messageID)
    body.append(contentsOf: #","app":"#.utf8)
    body.appendSafeJSONString(app)
    body.append(contentsOf: #","success":"#.utf8)
    body.appendDecimal(success)
    body.append(contentsOf: #","failure":"#.utf8)
    body.appendDecimal(failure)
    body.append(contentsOf: #","canonical_ids":"#.utf8)
    body.appendDecimal(canonicalIDs)
    body.append(contentsOf: #","results":["#.utf8)
    for (index, target) in targets.enumerated() {
      if index > 0 { body.append(0x2C) }
      Self.append(target, to: &body)
    }
    body.append(0x5D)
    if let report {
      body.append(contentsOf: #","report":"#.utf8)
      report.append(to: &body)
    }
    body.append(0x7D)
    return body
  }

  private static func append(_ target: Target, to body: inout [UInt8]) {
    switch target {
    case .accepted(let id, let registration, let uniqueID):
      body.append(contentsOf: #"{"message_id":"#.utf8)
      body.appendSafeJSONString(id)
      if let registration {
        body.append(contentsOf: #","registration_id":"#.utf8)
        body.appendSafeJSONString(registration)
      }
      if let uniqueID {
        body.append(contentsOf: #","apns_unique_id":"#.utf8)
        body.appendSafeJSONString(uniqueID)
      }
    case .failed(let code, let reason):
      body.append(contentsOf: #"{"error":"#.utf8)
      body.appendSafeJSONString(code.rawValue)
      if let reason {
        body.append(contentsOf: #","reason":"#.utf8)
        body.appendSafeJSONString(DeadLetter.bounded(reason))
      }
    }
    body.append(0x7D)
  }

  /// An audience's, once it has been sent to the last device: `{"message_id":…,"success":N,"failure":N}`.
  ///
  /// - Parameters:
  ///   - unknown: of a cancelled broadcast, devices that may have been reached; written where there are any.
  ///   - failed: registrations of a user's or group's devices that weren't reached, as `failed_registration_ids` in GCM's answer.
  ///   - failures: how many devices failed of each code and platform; written where there are any.
  public static func fanOut(
    messageID: [UInt8], success: Int, failure: Int, unknown: Int = 0, failed: [[UInt8]] = [], failures: [FailureCount] = []
  ) -> [UInt8] {
    var body: [UInt8] = []
    body.append(contentsOf: #"{"message_id":"#.utf8)
    body.appendSafeJSONString(messageID)
    body.append(contentsOf: #","success":"#.utf8)
    body.appendDecimal(success)
    body.append(contentsOf: #","failure":"#.utf8)
    body.appendDecimal(failure)
    if unknown > 0 {
      body.append(contentsOf: #","unknown":"#.utf8)
      body.appendDecimal(unknown)
    }
    for (index, registration) in failed.enumerated() {
      body.append(contentsOf: (index == 0 ? #","failed_registration_ids":["# : ",").utf8)
      body.appendSafeJSONString(registration)
    }
    if !failed.isEmpty { body.append(0x5D) }
    for (index, count) in failures.enumerated() {
      body.append(contentsOf: (index == 0 ? #","failures":[{"error":"# : #",{"error":"#).utf8)
      body.appendSafeJSONString(count.error.rawValue)
      if let platform = count.platform {
        body.append(contentsOf: #","platform":"#.utf8)
        body.appendSafeJSONString(platform == .apns ? "apns" : "fcm")
      }
      body.append(contentsOf: #","count":"#.utf8)
      body.appendDecimal(count.devices)
      body.append(0x7D)
    }
    if !failures.isEmpty { body.append(0x5D) }
    body.append(0x7D)
    return body
  }
}
