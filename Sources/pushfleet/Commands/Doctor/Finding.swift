import PushCore

/// What the doctor has found of one thing.
struct Finding {
  enum Level: String {
    case ok
    /// It works, and somebody should look.
    case warning
    /// Something can't be reached; exit status 69.
    case unreachable
    /// The configuration or a credential is wrong; exit status 78.
    case error
  }

  var level: Level
  /// What it is about: `broker 127.0.0.1:5672`.
  var subject: String
  var sentence: String
  /// What to do; nil where nothing is to be done.
  var remedy: String?

  var json: [UInt8] {
    var line = JSONObjectWriter()
    line.set("level", level.rawValue)
    line.set("about", subject)
    line.set("finding", sentence)
    line.set("remedy", remedy)
    return line.closed()
  }

  var text: String {
    let word = level.rawValue + String(repeating: " ", count: 12 - level.rawValue.count)
    let advice = remedy.map { "\n" + String(repeating: " ", count: 12) + "→ " + $0.printable } ?? ""
    return "\(word)\(subject.printable): \(sentence.printable)\(advice)"
  }

  /// Of all findings: the configuration first, as nothing can be reached without it.
  static func status(of findings: [Finding]) -> ExitStatus {
    if findings.contains(where: { $0.level == .error }) { return .configuration }
    return findings.contains { $0.level == .unreachable } ? .unavailable : .done
  }
}
