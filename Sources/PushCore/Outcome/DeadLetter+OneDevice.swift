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
    var replacement = Array("\"\(shape.name)\":".utf8)
    replacement.appendJSONString(target)
    // What changes in the text, in order. The first target is replaced; the others go, each with the comma before it.
    var edits: [(place: Range<Int>, text: [UInt8])] = []
    let beginning = request.source(object).lowerBound + 1
    var previousEnd = beginning
    for (name, value) in request.members(of: object) {
      let end = request.source(value).upperBound + (request.kind(value) == .string ? 1 : 0)
      if shape.targets.contains(where: { request.isString(name, $0) }) {
        edits.append(edits.isEmpty ? (request.offset(name)..<end, replacement) : (previousEnd..<end, []))
      }
      previousEnd = end
    }
    if edits.isEmpty { edits = [(beginning..<beginning, replacement + (request.count(object) > 0 ? [0x2C] : []))] }

    var output: [UInt8] = []
    // Of a list for a thousand devices little remains.
    output.reserveCapacity(edits.reduce(bytes.count) { $0 - $1.place.count + $1.text.count })
    var copied = 0
    for (place, text) in edits {
      output += bytes[copied..<place.lowerBound]
      output += text
      copied = place.upperBound
    }
    output += bytes[copied...]
    return output
  }

  private static let legacyTargets = ["to", "registration_ids", "condition", "notification_key"]
  private static let v1Targets = ["token", "fid", "topic", "condition"]
}
