import PushCore

/// Dead letters counted by application, error, reason and origin. The number of groups is bounded.
struct LetterGroups {
  struct Kind: Hashable {
    var app: String?
    var error: String?
    var reason: String
    var origin: String?
  }

  struct Group {
    var count = 0
    /// Unix milliseconds; nil while none of its letters has a time.
    var oldest: Int64?
    var newest: Int64?
  }

  /// Further letters count as "other reasons" of their application, error and origin, and then in a single group.
  private static let mostKinds = 1_000
  private static let others = "other reasons"

  private(set) var groups: [Kind: Group] = [:]
  private(set) var count = 0

  mutating func add(_ letter: Letter) {
    count += 1
    var kind = Kind(app: letter.app, error: letter.error, reason: Self.common(letter.reason), origin: letter.origin)
    if groups[kind] == nil, groups.count >= Self.mostKinds {
      kind.reason = Self.others
      if groups[kind] == nil, groups.count >= 2 * Self.mostKinds { kind = Kind(reason: Self.others) }
    }
    var group = groups[kind] ?? Group()
    group.count += 1
    if let time = letter.failedAt {
      group.oldest = min(group.oldest ?? time, time)
      group.newest = max(group.newest ?? time, time)
    }
    groups[kind] = group
  }

  /// The reason without the position in the body, which differs in every request.
  private static func common(_ reason: String) -> String {
    guard let place = reason.firstRange(of: " at byte ") else { return reason }
    return String(reason[..<place.lowerBound])
  }

  var sorted: [(kind: Kind, group: Group)] {
    func words(_ kind: Kind) -> [String] { [kind.app ?? "", kind.error ?? "", kind.reason, kind.origin ?? ""] }
    return groups.map { ($0.key, $0.value) }.sorted { a, b in
      a.1.count != b.1.count ? a.1.count > b.1.count : words(a.0).lexicographicallyPrecedes(words(b.0))
    }
  }

  var json: [JSONObject] {
    sorted.map { kind, group in
      [
        "app": kind.app, "error": kind.error, "reason": kind.reason, "origin": kind.origin, "count": group.count,
        "oldest": group.oldest.map(Timestamp.text), "newest": group.newest.map(Timestamp.text),
      ]
    }
  }

  private static let columns: [TextTable.Column] = [
    .figure("COUNT"), .name("APP", least: 12, rank: 3), .text("ERROR", least: 12, rank: 1), .name("FROM", least: 10, rank: 2),
    .figure("OLDEST", rank: 5), .figure("NEWEST", rank: 4), .text("REASON", least: 20),
  ]

  /// - Parameter width: columns of the terminal. In a narrow one, reasons go below the rows; times are left out first.
  func text(width: Int) -> String {
    let rows = sorted.map { kind, group in
      [
        Figures.count(group.count), kind.app ?? "-", kind.error ?? "-", kind.origin ?? "-",
        group.oldest.map(Figures.time) ?? "-", group.newest.map(Figures.time) ?? "-", kind.reason,
      ]
    }
    let table = TextTable(Self.columns, rows: rows)
    guard table.width > width else { return table.text() }
    let times = TextTable(Array(Self.columns.dropLast()), rows: rows.map { Array($0.dropLast()) })
    let narrow = times.lines(width: width)
    let reasons = rows.map { row in
      WrappedText.lines(row.last ?? "", room: width - 2).map { Shortened.end("  " + $0, to: width) }
    }
    return (narrow.prefix(1) + zip(narrow.dropFirst(), reasons).flatMap { [$0] + $1 } + times.note(width: width))
      .joined(separator: "\n")
  }
}
