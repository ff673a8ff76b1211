import PushCore
import Settings

/// Which dead letters a command is about; everything that is given has to hold.
struct LetterFilter {
  var app: String?
  var error: String?
  /// Where replaying it leads, such as `send.normal`.
  var origin: String?
  /// A part of the reason, in small letters.
  var reason: String?
  /// Unix milliseconds.
  var since: Int64?
  /// Message ids; empty for any.
  var ids: Set<String> = []
  var limit: Int?

  /// In a command's forms, and in its list.
  static let item = UsageForm.Item.group(
    "FILTERS", ["--app", "--error", "--origin", "--reason", "--since", "--limit", "--id"])
  static let entries: [PageEntry] = [
    .option("app", "APP", "only this application's"),
    .option("error", "CODE", "only those with this code (x-push-error); - for those that the broker gave up"),
    .option(
      "origin", "NAME",
      "only those that came by this queue (x-push-origin), such as send.high or registry; - for those that don't say it"),
    .option("reason", "TEXT", "only those whose reason has this text, in capitals or not"),
    .option("since", "TIME", "only those given up since then: 90s, 15m, 2h, 7d ago, or 2026-11-20T21:22:00Z"),
    .option("limit", "N", "at most N, the oldest first"),
    .operand("ID", "only letters with one of these message ids (or --id ID)"),
  ]

  /// - Parameter now: unix milliseconds.
  init(_ options: Options, now: Int64) throws(CommandFailure) {
    app = options["app"]
    error = options["error"]
    origin = options["origin"]
    reason = options["reason"]?.lowercased()
    if let text = options["since"] { since = try Self.time(text, now: now) }
    ids = Set(options.operands + [options["id"]].compactMap(\.self))
    limit = try options.integer("limit", in: 1...1_000_000_000)
  }

  /// Everything.
  init() {}

  static func time(_ text: String, now: Int64) throws(CommandFailure) -> Int64 {
    if let time = Timestamp.milliseconds(of: Array(text.utf8)) { return time }
    let factors: [Character: Int64] = ["s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
    guard let last = text.last, let factor = factors[last], let count = Int64(text.dropLast()), count >= 0,
      count <= 36_500 * 86_400_000 / factor
    else {
      throw CommandFailure(
        .usage, "--since \(Shown.value(text)): a time is how long ago (90s, 15m, 2h, 7d), or 2026-11-20T21:22:00Z")
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
