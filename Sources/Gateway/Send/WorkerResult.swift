import PushCore

/// A result as workers publish it (docs/schema/result.schema.json, fan-out-result.schema.json).
struct WorkerResult {
  enum Target {
    case accepted(id: [UInt8], registration: [UInt8]?)
    case failed([UInt8])
  }

  var success: Int64 = 0
  var failure: Int64 = 0
  /// In the order of the request's targets; empty for an audience.
  var targets: [Target] = []
  /// Of a group or a user's devices: the registrations that weren't reached.
  var failedRegistrations: [[UInt8]] = []

  /// Nil where it isn't one.
  init?(_ body: [UInt8]) {
    guard let document = try? JSONDocument(body, limits: JSONLimits(bytes: 4 << 20)),
      let success = document.value("success", of: document.root), let failure = document.value("failure", of: document.root)
    else { return nil }
    self.success = (try? document.integer(success)) ?? 0
    self.failure = (try? document.integer(failure)) ?? 0
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

  /// It reached nobody, and what stood in the way passes: the same request is to be tried again when it comes again. An audience's that is so large that
  /// its result names nobody is none: workers know its campaign, and would send nothing.
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

  /// The only word on all of a request's targets, where it was refused as a whole.
  var refusal: [UInt8]? {
    if targets.count == 1, case .failed(let code) = targets[0] { code } else { nil }
  }
}
