/// The result of a whole request in GCM's shape: the body of a message to `reply_to` and on `push.results`.
public struct SendResult: Sendable {
  public enum Target: Sendable, Equatable {
    /// Accepted by the provider under this id (`apns-id` or FCM's message name). `registration` is the newer id to use from now
    /// on. `uniqueID` is the id of the push in the log of APNs' sandbox.
    case accepted(id: [UInt8], registration: [UInt8]? = nil, uniqueID: [UInt8]? = nil)
    /// `reason` is that of the dead letter, if there is one: producers may not read dead letters.
    case failed(PushError, reason: String? = nil)
  }

  public var messageID: [UInt8]
  public var app: [UInt8]
  /// One for each target of the request, in the same order.
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
  /// - Parameter report: of a dry run; adds `,"report":{"apns":[…],"fcm":[…]}`.
  public func json(report: DryRunReport? = nil) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(160 + 64 * targets.count)
    body.append(#"{"message_id":"#)
    body.appendSafeJSONString(messageID)
    body.append(#","app":"#)
    body.appendSafeJSONString(app)
    body.append(#","success":"#)
    body.appendDecimal(success)
    body.append(#","failure":"#)
    body.appendDecimal(failure)
    body.append(#","canonical_ids":"#)
    body.appendDecimal(canonicalIDs)
    body.append(#","results":["#)
    for (index, target) in targets.enumerated() {
      if index > 0 { body.append(0x2C) }
      Self.append(target, to: &body)
    }
    body.append(0x5D)
    if let report {
      body.append(#","report":"#)
      body.append(contentsOf: report.json)
    }
    body.append(0x7D)
    return body
  }

  private static func append(_ target: Target, to body: inout [UInt8]) {
    switch target {
    case .accepted(let id, let registration, let uniqueID):
      body.append(#"{"message_id":"#)
      body.appendSafeJSONString(id)
      if let registration {
        body.append(#","registration_id":"#)
        body.appendSafeJSONString(registration)
      }
      if let uniqueID {
        body.append(#","apns_unique_id":"#)
        body.appendSafeJSONString(uniqueID)
      }
    case .failed(let code, let reason):
      body.append(#"{"error":"#)
      body.appendSafeJSONString(code.rawValue)
      if let reason {
        body.append(#","reason":"#)
        body.appendSafeJSONString(DeadLetter.bounded(reason))
      }
    }
    body.append(0x7D)
  }

  /// The result of an audience after its last device: `{"message_id":…,"success":N,"failure":N}`.
  /// - Parameters:
  ///   - unknown: devices of a cancelled broadcast that may have been reached; omitted if 0.
  ///   - failed: registrations of a user's or group's devices that weren't reached (`failed_registration_ids` in GCM).
  ///   - failures: failed devices by code and platform; omitted if empty.
  public static func fanOut(
    messageID: [UInt8], success: Int, failure: Int, unknown: Int = 0, failed: [[UInt8]] = [], failures: [FailureCount] = []
  ) -> [UInt8] {
    let counts = failures.map { count -> JSONObject in
      ["error": count.error.rawValue, "platform": JSONOptional(count.platform?.word), "count": count.devices]
    }
    let result: JSONObject = [
      "message_id": messageID, "success": success, "failure": failure, "unknown": JSONOptional(unknown > 0 ? unknown : nil),
      "failed_registration_ids": JSONOptional(failed.isEmpty ? nil : failed),
      "failures": JSONOptional(counts.isEmpty ? nil : counts),
    ]
    return result.line
  }
}
