extension DeadLetter {
  /// The request with one device as its only target, so that a replay reaches no other device. Replaces the member that names
  /// the targets (`message.token` in the v1 shape); all other bytes stay the same.
  /// - Parameter target: as `to` spells it: `DeadLetter.target(_:token:)`, or the registry's id.
  public static func body(_ request: JSONDocument, naming target: [UInt8]) -> [UInt8] {
    let bytes = request.bytes
    guard request.kind(request.root) == .object else { return bytes }
    var object = request.root
    var shape = (name: "to", targets: legacyTargets)
    if let message = request.value("message", of: object), request.kind(message) == .object {
      object = message
      shape = (name: "token", targets: v1Targets)
    }
    var replacement: [UInt8] = []
    replacement.appendJSONString(Array(shape.name.utf8))
    replacement.append(0x3A)
    replacement.appendJSONString(target)

    var output: [UInt8] = []
    // Subtracts the members that are left out: of a list for a thousand devices little remains.
    var size = bytes.count + replacement.count + 1
    for (name, value) in request.members(of: object) where shape.targets.contains(where: { request.isString(name, $0) }) {
      size -= request.source(value).count
    }
    output.reserveCapacity(size)
    /// Everything before this offset has been copied or left out.
    var copied = 0
    var previousEnd = request.source(object).lowerBound + 1
    var isNamed = false
    for (name, value) in request.members(of: object) {
      let start = request.offset(name)
      let end = request.source(value).upperBound + (request.kind(value) == .string ? 1 : 0)
      if shape.targets.contains(where: { request.isString(name, $0) }) {
        if isNamed {
          output.append(contentsOf: bytes[copied..<previousEnd])
        } else {
          output.append(contentsOf: bytes[copied..<start])
          output.append(contentsOf: replacement)
          isNamed = true
        }
        copied = end
      }
      previousEnd = end
    }
    if !isNamed {
      output.append(contentsOf: bytes[0...request.source(object).lowerBound])
      output.append(contentsOf: replacement)
      if request.count(object) > 0 { output.append(0x2C) }
      copied = request.source(object).lowerBound + 1
    }
    output.append(contentsOf: bytes[copied...])
    return output
  }

  private static let legacyTargets = ["to", "registration_ids", "condition", "notification_key"]
  private static let v1Targets = ["token", "fid", "topic", "condition"]
}
