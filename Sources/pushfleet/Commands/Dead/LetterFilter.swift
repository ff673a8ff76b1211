import Broker
import PushCore
import Settings

extension LetterFilter {
  static let item = UsageForm.Item.group(
    "FILTERS", ["--app", "--error", "--origin", "--reason", "--since", "--limit", "--id"])
  static func entries(of letters: String, since givenUp: String) -> [PageEntry] {
    [
      .option("app", "APP", "only \(letters) of this application"),
      .option("error", "CODE", "only \(letters) with this error code; - for those without one"),
      .option(
        "origin", "NAME",
        "only \(letters) from this queue (x-push-origin), such as send.high or registry; - for those without one"),
      .option("reason", "TEXT", "only \(letters) whose reason contains this text, in upper or lower case"),
      .option("since", "TIME", "only \(letters) \(givenUp) since then: 90s, 15m, 2h, 7d ago, or 2026-11-20T21:22:00Z"),
      .option("limit", "N", "at most N, the oldest first"),
      .operand("ID", "only \(letters) with one of these message ids (or --id ID)"),
    ]
  }

  /// - Parameter now: Unix milliseconds.
  init(_ options: Options, now: Int64) throws(CommandFailure) {
    self.init(app: options["app"])
    error = options["error"]
    origin = options["origin"]
    reason = options["reason"]?.lowercased()
    if let text = options["since"] { since = try Self.time(text, now: now) }
    ids = Set(options.operands + [options["id"]].compactMap(\.self))
    limit = try options.integer("limit", in: 1...1_000_000_000)
  }

  static func time(_ text: String, now: Int64, option: String = "since") throws(CommandFailure) -> Int64 {
    if let time = Timestamp.milliseconds(of: Array(text.utf8)) { return time }
    let factors: [Character: Int64] = ["s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
    guard let last = text.last, let factor = factors[last], let count = Int64(text.dropLast()), count >= 0,
      count <= 36_500 * 86_400_000 / factor
    else {
      throw CommandFailure(
        .usage,
        "--\(option) \(SafeText.value(text)): expected a duration (90s, 15m, 2h, 7d), or a time like 2026-11-20T21:22:00Z"
      )
    }
    return now - count * factor
  }

  func matches(_ letter: Letter) -> Bool {
    if let app, app != letter.app ?? "-" { return false }
    if let error, error != letter.error ?? "-" { return false }
    if let origin, origin != letter.origin ?? "-" { return false }
    if let reason, !letter.reason.lowercased().contains(reason) { return false }
    if let since, (letter.failedAt ?? 0) < since { return false }
    return ids.isEmpty || letter.messageID.map(ids.contains) == true
  }
}
