import PushCore

/// A result that a worker has published (docs/schema/result.schema.json, fan-out-result.schema.json).
struct WorkerResult {
  enum Target {
    case accepted(id: [UInt8], registration: [UInt8]?)
    case failed([UInt8])
  }

  var success: Int64 = 0
  var failure: Int64 = 0
  /// In the order of the request's targets; empty for an audience.
  var targets: [Target] = []
  /// The registrations of a group or user that weren't reached.
  var failedRegistrations: [[UInt8]] = []

  /// Nil if the body isn't a result.
  init?(_ body: [UInt8]) {
    guard let document = try? JSONDocument(body, limits: JSONLimits(bytes: 4 << 20)),
      let success = document.value("success", of: document.root), let failure = document.value("failure", of: document.root)
    else { return nil }
    self.success = document.integer(success) ?? 0
    self.failure = document.integer(failure) ?? 0
    if let results = document.value("results", of: document.root) {
      for result in document.elements(of: results) {
        if let error = document.value("error", of: result) {
          targets.append(.failed(document.string(error)))
        } else {
          let id = document.value("message_id", of: result).map(document.string) ?? []
          targets.append(.accepted(id: id, registration: document.value("registration_id", of: result).map(document.string)))
        }
      }
    }
    if let failed = document.value("failed_registration_ids", of: document.root) {
      failedRegistrations = document.elements(of: failed).map(document.string)
    }
  }

  /// True if all targets failed for a temporary reason, so that a repeat may be sent again. False for a campaign, whose result
  /// names no device: workers would recognise a repeat and send nothing.
  var isPassing: Bool {
    guard success == 0, failure > 0 else { return false }
    guard !targets.isEmpty else { return !failedRegistrations.isEmpty }
    return targets.allSatisfy { target in
      if case .failed(let code) = target {
        PushError(rawValue: String(decoding: code, as: UTF8.self))?.isPassing == true
      } else {
        false
      }
    }
  }

  /// The error of a request that was refused as a whole: its result has one failed target.
  var refusal: [UInt8]? {
    if targets.count == 1, case .failed(let code) = targets[0] { code } else { nil }
  }
}

extension PushError {
  /// True if a later repeat may succeed.
  var isPassing: Bool {
    switch self {
    case .unavailable, .internalServerError, .deviceMessageRateExceeded, .topicsMessageRateExceeded: true
    default: false
    }
  }
}
