/// The result of a whole request in GCM's shape: the body of a message to `reply_to` and on `push.results`.
public struct SendResult: Sendable {
  public enum Target: Sendable, Equatable {
    /// Accepted by the provider under this id (`apns-id` or FCM's message name). `registration` is the newer id to use from now
    /// on. `uniqueID` is the id of the push in the log of APNs' sandbox.
    case accepted(id: [UInt8], registration: [UInt8]? = nil, uniqueID: [UInt8]? = nil)
    /// `reason` is that of the dead letter, if there is one: producers may not read dead letters.
    case failed(PushError, reason: String? = nil)

    fileprivate func write(to object: inout JSONObjectWriter) {
      switch self {
      case .accepted(let id, let registration, let uniqueID):
        object.set("message_id", id)
        object.set("registration_id", ifKnown: registration)
        object.set("apns_unique_id", ifKnown: uniqueID)
      case .failed(let code, let reason):
        object.set("error", code.rawValue)
        if let reason { object.set("reason", DeadLetter.bounded(reason)) }
      }
    }
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
    var line: [UInt8] = []
    line.reserveCapacity(160 + 64 * targets.count)
    var result = JSONObjectWriter(after: consume line)
    result.set("message_id", messageID)
    result.set("app", app)
    result.set("success", Int64(success))
    result.set("failure", Int64(failure))
    result.set("canonical_ids", Int64(canonicalIDs))
    result.set("results", objects: targets.count) { targets[$0].write(to: &$1) }
    if let report { result.set("report", raw: report.json) }
    return result.closed()
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
