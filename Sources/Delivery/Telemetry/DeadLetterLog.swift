import PushCore
import Wire

/// Decides which dead letters are logged: the first of a kind at once, then a count once a minute. Reasons are the words of
/// parsers and providers, which may contain tokens: words that look like a token are left out.
package struct DeadLetterLog {
  package struct Kind: Hashable, Comparable {
    package var app: Int?
    package var error: PushError
    package var reason: String

    package static func < (a: Kind, b: Kind) -> Bool {
      (a.app ?? -1, a.error.rawValue, a.reason) < (b.app ?? -1, b.error.rawValue, b.reason)
    }
  }

  /// The limit of kinds. Further ones count as other reasons of their application and error.
  static let mostKinds = 50
  /// Seconds.
  static let period = 60.0

  /// The number of unlogged letters of each kind, and the last one's message id.
  private var unlogged: [Kind: (count: Int, messageID: [UInt8])] = [:]
  private var nextReport = MonotonicTime(nanoseconds: 0)

  /// - Returns: the kind to log at once; nil if the letter is only counted.
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

  /// To be called about once a second. Returns the counts since the last report and forgets kinds that have not come back.
  mutating func due(at now: MonotonicTime) -> [(kind: Kind, count: Int, messageID: [UInt8])] {
    guard now >= nextReport else { return [] }
    nextReport = now.advanced(bySeconds: Self.period)
    let report = unlogged.filter { $0.value.count > 0 }
    unlogged = report.mapValues { _ in (0, []) }
    return report.map { ($0.key, $0.value.count, $0.value.messageID) }.sorted { $0.0 < $1.0 }
  }

  /// The reason without its position in the body, which differs between requests, and without words that may be tokens.
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
    // A truncated word may be the beginning of a token.
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

  /// Longer than every name of this program and of the providers, shorter than a token.
  private static let longestWord = 31
}
