/// Finds the one target of a request.
struct TargetReader {
  let check: FieldCheck
  var document: JSONDocument { check.document }

  /// GCM's shape: `to`, `notification_key` (the old name of `to` for groups), `registration_ids`, `condition`, in this order.
  func read(_ fields: [Int?], _ request: inout SendRequest) throws(Rejection) {
    let node = try only(fields, names: "to, registration_ids or condition")
    request.targetNode = node
    if node == fields[2] {
      request.targets = try list(node)
    } else if node == fields[3] {
      request.targets = try condition(node)
    } else {
      request.targets = .one(try target(node))
    }
  }

  /// FCM v1's shape. A topic stands there without its prefix.
  func readV1(token: Int?, topic: Int?, condition node: Int?, _ request: inout SendRequest) throws(Rejection) {
    let only = try only([token, topic, node], names: "token, topic or condition")
    request.targetNode = only
    if only == node {
      request.targets = try condition(only)
    } else if only == topic {
      let name = try text(only)
      guard TextForm.isTopicName(name[...]) else {
        throw check.refusal(
          only, .invalidRegistration, "expected a topic's name without /topics/, of the characters a-z A-Z 0-9 - _ . ~ %")
      }
      request.targets = .one(.topic(name))
    } else {
      let target = try target(only)
      if case .topic = target { throw check.refusal(only, .invalidRegistration, "a topic where a token belongs") }
      request.targets = .one(target)
    }
  }

  /// GS-001, and at most one target.
  private func only(_ fields: [Int?], names: String) throws(Rejection) -> Int {
    var found: Int?
    for case let node? in fields {
      guard found == nil else {
        throw check.refusal(node, .invalidParameters, "a second target, expected only one of \(names)")
      }
      found = node
    }
    guard let found else { throw Rejection(.missingRegistration, "no target: one of \(names) is needed") }
    return found
  }

  private func text(_ node: Int) throws(Rejection) -> [UInt8] {
    guard document.kind(node) == .string else { throw check.wrongType(node, expected: "a string") }
    let text = document.string(node)
    guard !text.isEmpty else { throw check.refusal(node, .missingRegistration, "empty") }
    return text
  }

  private func target(_ node: Int) throws(Rejection) -> Target {
    switch Target.classify(try text(node)) {
    case .success(let target): return target
    case .failure(let refused): throw check.refusal(node, refused.code, refused.reason)
    }
  }

  private func list(_ node: Int) throws(Rejection) -> Targets {
    guard document.kind(node) == .array else { throw check.wrongType(node, expected: "an array of strings") }
    let count = document.count(node)
    guard count > 0 else { throw check.refusal(node, .missingRegistration, "empty") }
    guard count <= check.limits.registrationIDs else {
      throw check.refusal(node, .invalidParameters, "\(count) entries, at most \(check.limits.registrationIDs) allowed")
    }
    var targets: [Target] = []
    targets.reserveCapacity(count)
    for element in document.elements(of: node) {
      guard document.kind(element) == .string else { throw check.wrongType(element, expected: "a string") }
      targets.append(entry(element, targets.count, of: node))
    }
    return .list(targets)
  }

  /// One entry of `registration_ids`. A topic isn't a device: it has no single result that could stand at the entry's index.
  private func entry(_ element: Int, _ index: Int, of list: Int) -> Target {
    let rule: String
    switch Target.classify(document.string(element)) {
    case .success(.topic): rule = "a topic can't stand in a list"
    case .success(let target): return target
    case .failure(let refused): rule = refused.reason
    }
    let place = "\(document.path(to: list))[\(index)]"
    return .invalid(Rejection(.invalidRegistration, "\(place): \(rule) at byte \(document.offset(element))"))
  }

  private func condition(_ node: Int) throws(Rejection) -> Targets {
    let text = try text(node)
    do {
      return .condition(try Condition.parse(text, mostTopics: check.limits.conditionTopics))
    } catch {
      throw check.refusal(node, .invalidParameters, "\(error.reason) (byte \(error.offset) of the condition)")
    }
  }
}
