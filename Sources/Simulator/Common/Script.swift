import PushCore

/// Device tokens and their scripted answers: `{"<token>": {"status": 410, "reason": "Unregistered"}, "*": {…}}`.
///
/// A single step applies to every request, or to the first `times` requests. An array of steps applies to successive requests,
/// each step to one or to `times` requests. Later requests get the normal answer. `*` applies to all tokens without an entry;
/// its `times` are counted for each token.
public struct Script: Sendable {
  private struct Entry: Sendable {
    var steps: [Step]
    var isSequence: Bool
  }

  private var entries: [[UInt8]: Entry] = [:]
  private var fallback: Entry?
  private var visits: [[UInt8]: Int] = [:]
  private var everyCounts: [[UInt8]: Int] = [:]

  public init() {}

  /// - Throws: a `ScriptError` that names the position and the accepted values.
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

  /// FCM accepts an installation id as `fid` and as `token`. It is one device, with or without `fid:`.
  private static func key(_ token: [UInt8]) -> [UInt8] { token.starts(with: "fid:".utf8) ? Array(token.dropFirst(4)) : token }

  private mutating func add(_ token: String, _ entry: Entry) {
    if token == "*" { fallback = entry } else { entries[Self.key(Array(token.utf8))] = entry }
  }

  /// The step for the next request of `token`; nil for the normal answer.
  mutating func next(_ given: [UInt8]) -> Step? {
    let token = Self.key(given)
    let own = entries[token]
    guard let entry = own ?? fallback else { return nil }
    if !entry.isSequence, entry.steps[0].times == nil { return every(entry.steps[0], own == nil ? [] : token) }
    let visit = visits[token, default: 0]
    visits[token] = visit + 1
    var end = 0
    for step in entry.steps {
      end += step.times ?? 1
      if visit < end { return every(step, own == nil ? [] : token) }
    }
    return nil
  }

  /// Counts the requests of each entry; for `*`, those of all its tokens.
  private mutating func every(_ step: Step, _ entry: [UInt8]) -> Step? {
    guard let every = step.every else { return step }
    let count = everyCounts[entry, default: 0] + 1
    everyCounts[entry] = count
    return count % every == 0 ? step : nil
  }
}

/// The mistake in a script and its position.
public struct ScriptError: Error, Equatable, CustomStringConvertible {
  public let description: String
  init(_ description: String) { self.description = description }
}
