import PushCore
import Wire

/// Which dead letters are logged: the first of a kind at once, then once a minute how many of that kind came since.
///
/// Reasons are the words of parsers and providers, who may repeat what they were given: what looks like a token is left out.
package struct DeadLetterLog {
  package struct Kind: Hashable, Comparable {
    /// Index of the application; nil for a request of none that is known.
    package var app: Int?
    package var error: PushError
    package var reason: String

    package static func < (a: Kind, b: Kind) -> Bool {
      (a.app ?? -1, a.error.rawValue, a.reason) < (b.app ?? -1, b.error.rawValue, b.reason)
    }
  }

  /// Kinds that are distinguished; further ones count as other reasons of their application and error.
  static let mostKinds = 50
  /// Seconds.
  static let period = 60.0

  /// How many of a kind have not been logged, and the request of the last one.
  private var unlogged: [Kind: (count: Int, messageID: [UInt8])] = [:]
  private var nextReport = MonotonicTime(nanoseconds: 0)

  /// - Returns: what to log at once; nil when it is only counted.
  mutating func note(app: Int?, error: PushError, reason: String, messageID: [UInt8] = []) -> Kind? {
    var kind = Kind(app: app, error: error, reason: Self.words(of: reason))
    if unlogged[kind] == nil, unlogged.count >= Self.mostKinds { kind.reason = "other reasons" }
    if let earlier = unlogged[kind] {
      unlogged[kind] = (earlier.count + 1, messageID)
      return nil
    }
    unlogged[kind] = (0, [])
    return kind
  }

  /// To be called about once a second: what has come since the last report. A kind that has not come back is forgotten.
  mutating func due(at now: MonotonicTime) -> [(kind: Kind, count: Int, messageID: [UInt8])] {
    guard now >= nextReport else { return [] }
    nextReport = now.advanced(bySeconds: Self.period)
    let report = unlogged.filter { $0.value.count > 0 }
    unlogged = report.mapValues { _ in (0, []) }
    return report.map { ($0.key, $0.value.count, $0.value.messageID) }.sorted { $0.0 < $1.0 }
  }

  /// A reason for the log: without the place in the body, which is another in every request, and without what may be a token.
  package static func words(of reason: String) -> String {
    let place = reason.firstRange(of: " at byte ")
    let text = reason[..<(place?.lowerBound ?? reason.endIndex)].unicodeScalars
    var words = ""
    var run = ""
    func endRun(isCut: Bool = false) {
      words += isCut || run.utf8.count > longestWord ? "…" : run
      run = ""
    }
    for character in text.prefix(longestReason) {
      if isOfTokens(character) {
        run.unicodeScalars.append(character)
      } else {
        endRun()
        words.unicodeScalars.append(character)
      }
    }
    // A word that is cut off may be the beginning of a token.
    endRun(isCut: !run.isEmpty && text.count > longestReason)
    return words
  }

  private static func isOfTokens(_ character: Unicode.Scalar) -> Bool {
    switch character {
    case "a"..."z", "A"..."Z", "0"..."9", "_", "-", ":", "%", "+", "/", "=": true
    default: false
    }
  }

  private static let longestReason = 200

  /// Longer than every name of ours and of the providers, shorter than a token.
  private static let longestWord = 31
}
