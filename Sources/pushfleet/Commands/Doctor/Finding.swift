import PushCore

struct Finding {
  enum Level: String {
    case ok
    /// It works, but needs attention.
    case warning
    /// Something can't be reached; exit status 69.
    case unreachable
    /// The configuration or a credential is wrong; exit status 78.
    case error
  }

  var level: Level
  /// The subject of the check, such as `broker 127.0.0.1:5672`.
  var subject: String
  var sentence: String
  /// The remedy; nil if nothing is to be done.
  var remedy: String?

  init(_ level: Level, _ subject: String, _ sentence: String, _ remedy: String? = nil) {
    (self.level, self.subject, self.sentence, self.remedy) = (level, subject, sentence, remedy)
  }

  var json: JSONObject { ["level": level.rawValue, "about": subject, "finding": sentence, "remedy": remedy] }

  private static let margin = 12

  /// - Parameter width: columns; sentences wrap between words.
  func text(width: Int) -> String {
    let blank = String(repeating: " ", count: Self.margin)
    let found = WrappedText.lines(
      "\(subject.printable): \(sentence.printable)", first: level.rawValue.padded(to: Self.margin), rest: blank, width: width)
    let advice = remedy.map { remedy in
      WrappedText.lines(remedy.printable, first: blank + "→ ", rest: blank + "  ", width: width)
    }
    return (found + (advice ?? [])).joined(separator: "\n")
  }

  /// Configuration errors come first, because nothing can be reached without a valid configuration.
  static func status(of findings: [Finding]) -> ExitStatus {
    if findings.contains(where: { $0.level == .error }) { return .configuration }
    return findings.contains { $0.level == .unreachable } ? .unavailable : .done
  }
}
