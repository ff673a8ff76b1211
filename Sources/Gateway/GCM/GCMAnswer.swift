import PushCore
import StatusHTTP

/// Answers in GCM's shapes, which old clients read strictly: counts as numbers, ids of tokens as strings, ids of topics as
/// numbers.
struct GCMAnswer {
  enum Shape: Equatable {
    /// This many targets; one token is a list of one.
    case multicast(Int)
    case topic
    /// A topic, condition or whole application that the registry resolves. An empty audience is a success, as it was for
    /// Google.
    case audience
    case group
    case form
  }

  let shape: Shape
  /// The request's outcome is published under this id.
  let messageID: [UInt8]

  /// A positive 63-bit number derived from the id.
  private var number: Int64 {
    let hash = messageID.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    return Int64(bitPattern: (hash ^ hash >> 32) >> 1) | 1
  }

  /// Adds the message id as a header, because the answer for a topic has no field for it.
  func answer(_ outcome: SendService.Outcome) -> HTTPAnswer {
    var answer = shaped(outcome)
    answer.headers["X-Push-Message-Id"] = String(decoding: messageID, as: UTF8.self)
    return answer
  }

  private func shaped(_ outcome: SendService.Outcome) -> HTTPAnswer {
    if let fault = outcome.fault { return ErrorFormat.legacy.answer(fault) }
    guard case .result(let body) = outcome, let result = WorkerResult(body) else { return accepted }
    return answer(result)
  }

  /// The answer to an accepted request whose outcome isn't known yet.
  private var accepted: HTTPAnswer {
    switch shape {
    case .multicast(let count):
      return multicast(Array(repeating: .accepted(id: messageID, registration: nil), count: count))
    case .topic, .audience: return .json(200, ["message_id": number])
    case .group:
      return .json(200, ["success": 0, "failure": 0, "message_id": messageID])
    case .form: return line(.accepted(id: messageID, registration: nil))
    }
  }

  /// The answer to a request that is refused as a whole.
  func refused(_ code: String) -> HTTPAnswer {
    let failed = WorkerResult.Target.failed(Array(code.utf8))
    switch shape {
    case .multicast(let count): return multicast(Array(repeating: failed, count: max(count, 1)))
    case .topic, .audience: return .json(200, ["error": code])
    case .group: return multicast([failed])
    case .form: return line(failed)
    }
  }

  private func answer(_ result: WorkerResult) -> HTTPAnswer {
    let refusal = result.refusal.map { String(decoding: $0, as: UTF8.self) }
    switch shape {
    case .multicast(let count):
      if result.targets.count != count, let refusal { return refused(refusal) }
      return multicast(result.targets)
    case .topic, .audience:
      if let refusal, shape != .audience || refusal != PushError.invalidRegistration.rawValue { return refused(refusal) }
      return accepted
    case .group:
      if let refusal { return refused(refusal) }
      // GCM answered this way if no member was reached.
      if result.success == 0, result.failure > 0 {
        return ErrorFormat.legacy.answer(.unavailable("none of the group's devices was reached"))
      }
      let failed = result.failedRegistrations.isEmpty ? nil : result.failedRegistrations
      return .json(
        200, ["success": result.success, "failure": result.failure, "failed_registration_ids": JSONOptional(failed)])
    case .form: return line(result.targets.first ?? .accepted(id: messageID, registration: nil))
    }
  }

  private func multicast(_ targets: [WorkerResult.Target]) -> HTTPAnswer {
    var (success, canonical): (Int64, Int64) = (0, 0)
    for case .accepted(_, let registration) in targets {
      success += 1
      if registration != nil { canonical += 1 }
    }
    // Most requests get this answer, so it is written without intermediate objects into memory that is large enough.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(128 + 64 * targets.count)
    var body = JSONObjectWriter(after: consume bytes)
    body.set("multicast_id", number)
    body.set("success", success)
    body.set("failure", Int64(targets.count) - success)
    body.set("canonical_ids", canonical)
    body.set("results", objects: targets.count) { targets[$0].write(to: &$1, orElse: messageID) }
    return .json(200, line: body.closed())
  }

  // MARK: lines of text

  /// Never writes `Error=Unavailable`: in this form that was a status.
  private func line(_ target: WorkerResult.Target) -> HTTPAnswer {
    switch target {
    case .accepted(let id, let registration):
      let canonical = registration.map { "registration_id=\(String(decoding: $0, as: UTF8.self))\n" } ?? ""
      return .text(200, "id=\(Self.plain(id.isEmpty ? messageID : id))\n" + canonical)
    case .failed(let code):
      let word = String(decoding: code, as: UTF8.self)
      if word == "Unavailable" { return ErrorFormat.legacy.answer(.unavailable("try again later")) }
      if word == "InternalServerError" { return .text(500, "InternalServerError\n", headers: ["Retry-After": "5"]) }
      return .text(200, "Error=\(word)\n")
    }
  }

  /// Removes characters that would look like another field: a line has one `=`.
  private static func plain(_ id: [UInt8]) -> String {
    String(decoding: id.filter { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "=") }, as: UTF8.self)
  }
}

extension GCMAnswer.Shape {
  /// The shape for a request that is refused before its targets are read. A list gets one error for each entry.
  init(unread document: JSONDocument) {
    if let list = document.value("registration_ids", of: document.root), document.kind(list) == .array {
      self = .multicast(document.count(list))
      return
    }
    let isNamed = document.string("to").map { $0.starts(with: "/topics/".utf8) || $0.elementsEqual("/all".utf8) } ?? false
    self = isNamed || document.string("condition") != nil ? .topic : .multicast(1)
  }

  init(_ targets: Targets) {
    switch targets {
    case .list(let list): self = .multicast(list.count)
    case .condition: self = .audience
    case .one(let target):
      switch target {
      case .topic, .all: self = .audience
      case .fcmTopics, .channel: self = .topic
      case .group, .user: self = .group
      case .apns, .fcm, .webpush, .registration, .invalid: self = .multicast(1)
      }
    }
  }
}

extension WorkerResult.Target {
  fileprivate func write(to object: inout JSONObjectWriter, orElse messageID: [UInt8]) {
    switch self {
    case .accepted(let id, let registration):
      object.set("message_id", id.isEmpty ? messageID : id)
      if let registration { object.set("registration_id", registration) }
    case .failed(let code): object.set("error", code)
    }
  }
}
