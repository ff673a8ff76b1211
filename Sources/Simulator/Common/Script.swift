import PushCore

/// Device tokens and what they provoke: `{"<token>": {"status": 410, "reason": "Unregistered"}, "*": {…}}`.
///
/// A value is one step, which holds for every request (or for `times` of them, then all is normal), or an array of steps
/// for successive requests (each once, or `times`), after which all is normal. `*` stands for every token without an
/// entry of its own; its `times` are counted per token.
public struct Script: Sendable {
  struct Entry: Sendable {
    var steps: [Step]
    var isSequence: Bool
  }

  var entries: [[UInt8]: Entry] = [:]
  var fallback: Entry?

  public init() {}

  /// One step for one token; `*` for all others.
  public init(_ steps: [String: Step]) {
    for (token, step) in steps { add(token, Entry(steps: [step], isSequence: false)) }
  }

  public init(sequences: [String: [Step]]) {
    for (token, steps) in sequences { add(token, Entry(steps: steps, isSequence: true)) }
  }

  /// - Throws: a `ScriptError` that names the place and what may stand there.
  public init(parsing json: [UInt8]) throws(ScriptError) {
    let document: JSONDocument
    do throws(JSONError) { document = try JSONDocument(json) } catch { throw ScriptError("\(error)") }
    guard document.kind(document.root) == .object else { throw ScriptError("a script is an object of tokens") }
    for (name, value) in document.members(of: document.root) {
      let token = document.text(name)
      let reader = StepReader(document: document)
      switch document.kind(value) {
      case .object: add(token, Entry(steps: [try reader.step(value)], isSequence: false))
      case .array:
        var steps: [Step] = []
        for element in document.elements(of: value) { steps.append(try reader.step(element)) }
        add(token, Entry(steps: steps, isSequence: true))
      default: throw ScriptError("\(document.path(to: value)) is \(document.kind(value).words), not a step or a list of steps")
      }
    }
  }

  /// FCM takes an installation's id as `fid` and as `token`: it is one device, with or without `fid:`.
  static func key(_ token: [UInt8]) -> [UInt8] { token.starts(with: "fid:".utf8) ? Array(token.dropFirst(4)) : token }

  private mutating func add(_ token: String, _ entry: Entry) {
    if token == "*" { fallback = entry } else { entries[Self.key(Array(token.utf8))] = entry }
  }
}

/// What is wrong in a script, and where.
public struct ScriptError: Error, Equatable, CustomStringConvertible {
  public let description: String
  init(_ description: String) { self.description = description }
}
