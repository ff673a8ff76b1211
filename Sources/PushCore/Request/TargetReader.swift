/// Reads the target of a request.
extension RequestReader {
  /// GCM's shape. `notification_key` is the old name of `to` for groups.
  func readTarget(
    to: Int?, notificationKey: Int?, registrationIDs: Int?, condition node: Int?, _ request: SendRequest
  ) throws(Rejection) {
    let only = try only(to, notificationKey, registrationIDs, node, names: "to, registration_ids or condition")
    request.targetNode = only
    if only == registrationIDs {
      request.targets = try list(only)
    } else if only == node {
      request.targets = try condition(only)
    } else {
      request.targets = .one(try target(only))
    }
  }

  /// FCM v1's shape. Topics and installation ids have no prefixes there.
  func readTargetV1(
    token: Int?, fid: Int?, topic: Int?, condition node: Int?, _ request: SendRequest
  ) throws(Rejection) {
    let only = try only(token, fid, topic, node, names: "token, fid, topic or condition")
    request.targetNode = only
    if only == node {
      request.targets = try condition(only)
    } else if only == fid {
      switch Target.installation(try text(only)) {
      case .success(let target): request.targets = .one(target)
      case .failure(let refused): throw refusal(only, refused.code, refused.reason)
      }
    } else if only == topic {
      let name = try text(only)
      guard TextForm.isTopicName(name) else {
        throw refusal(
          only, .invalidRegistration, "expected a topic's name without /topics/, of the characters a-z A-Z 0-9 - _ . ~ %")
      }
      request.targets = .one(.topic(Array(name)))
    } else {
      let target = try target(only)
      switch target {
      case .topic: throw refusal(only, .invalidRegistration, "a topic where a token belongs")
      case .all: throw refusal(only, .invalidRegistration, "all devices where a token belongs")
      default: break
      }
      request.targets = .one(target)
    }
  }

  /// GS-001, and at most one target.
  private func only(_ a: Int?, _ b: Int?, _ c: Int?, _ d: Int?, names: String) throws(Rejection) -> Int {
    guard let found = a ?? b ?? c ?? d else {
      throw Rejection(.missingRegistration, "no target: one of \(names) is needed")
    }
    if let second = d ?? c ?? b, second != found {
      throw refusal(second, .invalidParameters, "a second target, expected only one of \(names)")
    }
    return found
  }

  private func text(_ node: Int) throws(Rejection) -> ArraySlice<UInt8> {
    guard document.kind(node) == .string else { throw wrongType(node, expected: "a string") }
    let text = document.slice(node)
    guard !text.isEmpty else { throw refusal(node, .missingRegistration, "empty") }
    return text
  }

  private func target(_ node: Int) throws(Rejection) -> Target {
    switch Target.classify(try text(node)) {
    case .success(let target): return target
    case .failure(let refused): throw refusal(node, refused.code, refused.reason)
    }
  }

  private func list(_ node: Int) throws(Rejection) -> Targets {
    guard document.kind(node) == .array else { throw wrongType(node, expected: "an array of strings") }
    let count = document.count(node)
    guard count > 0 else { throw refusal(node, .missingRegistration, "empty") }
    guard count <= limits.registrationIDs else {
      throw refusal(node, .invalidParameters, "\(count) entries, at most \(limits.registrationIDs) allowed")
    }
    var targets: [Target] = []
    targets.reserveCapacity(count)
    // Made once: it looks at all members of the request.
    lazy var path = document.path(to: node)
    for element in document.elements(of: node) {
      guard document.kind(element) == .string else { throw wrongType(element, expected: "a string") }
      switch Target.classify(document.slice(element)) {
      case .success(let target): targets.append(target)
      case .failure(let refused):
        // An invalid entry doesn't affect the others.
        let reason = "\(path)[\(targets.count)]: \(refused.reason) at byte \(document.offset(element))"
        targets.append(.invalid(Rejection(.invalidRegistration, reason)))
      }
    }
    return .list(targets)
  }

  private func condition(_ node: Int) throws(Rejection) -> Targets {
    let text = try text(node)
    do {
      return .condition(try Condition.parse(Array(text), mostTopics: limits.conditionTopics))
    } catch {
      throw refusal(node, .invalidParameters, "\(error.reason) (byte \(error.offset) of the condition)")
    }
  }
}
