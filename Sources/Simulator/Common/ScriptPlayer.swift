/// Plays a script: counts the requests of each token.
struct ScriptPlayer {
  private let script: Script
  private var visits: [[UInt8]: Int] = [:]
  private var everyCounts: [[UInt8]: Int] = [:]

  init(_ script: Script) { self.script = script }

  /// The step for the next request of `token`; nil for the normal answer.
  mutating func next(_ given: [UInt8]) -> Step? {
    let token = Script.key(given)
    let own = script.entries[token]
    guard let entry = own ?? script.fallback else { return nil }
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
