import PushCore

/// A note of several that are stored together.
struct Placed<Content> {
  /// Index of the answer.
  let place: Int
  let content: Content
  let now: Int64
}

/// Stores notes that arrive together. Each kind is processed separately, in order of arrival.
extension DeviceStore {
  /// Stores several notes, with the same effect as one by one. After an error it can be repeated, even if some are stored.
  /// - Parameter notes: each with its time.
  /// - Returns: the answers in order, and whether anything was written.
  public func note(_ notes: [(note: Note, now: Int64)]) throws(RegistryError) -> (answers: [NoteAnswer], hasWritten: Bool) {
    var hasWritten = false
    var answers = [NoteAnswer](repeating: .message, count: notes.count)
    var counts: [Placed<BadgeCount>] = []
    var messages: [(key: Int64, id: [UInt8], now: Int64)] = []
    var pages: [Placed<ContentPage>] = []
    var requests = RequestNotes()
    // Stores an earlier note of this name first.
    func begin(_ name: [UInt8]) throws(RegistryError) {
      if requests.names.contains(name) { hasWritten = try noteRequests(&requests, &answers) || hasWritten }
      requests.names.insert(name)
    }
    for (place, (note, now)) in notes.enumerated() {
      switch note {
      case .badges(let count): counts.append(.init(place: place, content: count, now: now))
      case .message(let id): messages.append((MessageKey.of(id), id, now))
      case .page(let page): pages.append(.init(place: place, content: page, now: now))
      case .claim(let name, let message, let body, let until):
        try begin(name)
        requests.claims.append(.init(place: place, content: (name, message, body, until), now: now))
      case .settle(let name, let state, let until, let isLate):
        try begin(name)
        requests.settlements.append(.init(place: place, content: (name, state, until, isLate), now: now))
      }
    }
    if counts.count + messages.count + pages.count > 0 {
      var tally = BadgeTally()
      var unkept: UnkeptPages = ([], [])
      let isWritten = try lookAndWrite { () throws(RegistryError) in
        tally = try self.tally(counts)
        unkept = try self.unkept(pages, &answers)
        guard tally.isWriting || !messages.isEmpty || !unkept.pages.isEmpty else {
          try countBadges(&tally)
          return nil
        }
        // `allNotes`, because each page's size is counted once.
        return pages.isEmpty ? .notes(of: tally.apps) : .allNotes
      } write: { () throws(RegistryError) in
        // Shared rows are written in the order of their keys. Otherwise writers for several applications could deadlock.
        let ordered = messages.sorted { $0.key < $1.key }
        try session.runEach(SQL.keepMessage, ordered.flatMap { [.int($0.key), .blob($0.id), .int($0.now)] })
        unkept.pages.sort { $0.content.digest.lexicographicallyPrecedes($1.content.digest) }
        try keepPages(unkept, &answers)
        try countBadges(&tally)
      }
      hasWritten = hasWritten || isWritten
      for (count, numbers) in zip(counts, tally.numbers) { answers[count.place] = .badges(numbers) }
    }
    hasWritten = try noteRequests(&requests, &answers) || hasWritten
    return (answers, hasWritten)
  }

  /// Like ``SQLSession/lookAndWrite(_:write:)``; a failure also clears the cached names.
  func lookAndWrite(
    _ look: () throws(RegistryError) -> TransactionIntent?, write: () throws(RegistryError) -> Void
  ) throws(RegistryError) -> Bool {
    do throws(RegistryError) { return try session.lookAndWrite(look, write: write) } catch {
      forgetNames()
      throw error
    }
  }

  // MARK: Waiting requests

  /// Records waiting requests. The newest one in each place wins, regardless of the order of calls. Each place at most once.
  public func noteWaiting(_ notes: [CollapseNote]) throws(RegistryError) {
    guard !notes.isEmpty else { return }
    let sorted = notes.sorted { $0.place.bytes.lexicographicallyPrecedes($1.place.bytes) }
    let values: [SQLValue] = sorted.flatMap { [.blob($0.place.bytes), .blob($0.order.bytes), .int($0.until)] }
    try writeEach(.notes(of: []), SQL.noteWaiting, values)
  }

  /// The newest requests in the order of the places; nil if none is recorded.
  public func newestWaiting(in places: [CollapsePlace]) throws(RegistryError) -> [CollapseOrder?] {
    try session.ofEach(SQL.newestWaiting, places.map { .blob($0.bytes) }) { CollapseOrder($0.bytes(0)) }
  }

  // MARK: Pages of content

  /// Pages to store, and the digests of those whose content exists: only their lifetime must be extended.
  private typealias UnkeptPages = (pages: [Placed<ContentPage>], known: Set<[UInt8]>)

  /// Answers the pages whose lifetime is long enough, and returns the others. So the pages of a broadcast need no write each.
  private func unkept(_ pages: [Placed<ContentPage>], _ answers: inout [NoteAnswer]) throws(RegistryError) -> UnkeptPages {
    let known = try session.ofEach(SQL.pageByDigest, pages.map { .blob($0.content.digest) }) { row in
      (name: row.bytes(0), until: row.int(1))
    }
    var rest: UnkeptPages = ([], [])
    for (page, known) in zip(pages, known) {
      let keep = page.content.keep
      if let known, known.until >= page.now + keep - keep / Self.slack {
        answers[page.place] = .page(known.name)
      } else {
        if known != nil { rest.known.insert(page.content.digest) }
        rest.pages.append(page)
      }
    }
    return rest
  }

  /// Stores pages. If the application has no room for a page, the answer is nil.
  private func keepPages(_ unkept: UnkeptPages, _ answers: inout [NoteAnswer]) throws(RegistryError) {
    var known = unkept.known
    var used: [[UInt8]: Int64] = [:]
    var added: [[UInt8]: Int64] = [:]
    var kept: [Placed<ContentPage>] = []
    for keeping in unkept.pages {
      let page = keeping.content
      if !known.contains(page.digest) {
        var before = used[page.app] ?? 0
        if used[page.app] == nil { before = try session.firstInt(SQL.contentOfApp, [.text(page.app)]) ?? 0 }
        used[page.app] = before
        guard before + Int64(page.content.count) <= page.most else {
          answers[keeping.place] = .page(nil)
          continue
        }
        known.insert(page.digest)
        used[page.app] = before + Int64(page.content.count)
        added[page.app, default: 0] += Int64(page.content.count)
      }
      kept.append(keeping)
    }
    let values: [SQLValue] = kept.flatMap {
      [
        .blob($0.content.digest), .text(ContentPage.makeName(makeSalt)), .blob($0.content.content),
        .int($0.now + $0.content.keep), .text($0.content.app),
      ]
    }
    for (keeping, name) in zip(kept, try session.ofEach(SQL.keepPage, values) { $0.bytes(0) }) {
      guard let name else { throw Self.noRow }
      answers[keeping.place] = .page(name)
    }
    try addContent(added)
  }

  private func addContent(_ sizes: [[UInt8]: Int64]) throws(RegistryError) {
    let sizes = sizes.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    try session.runEach(SQL.addContent, sizes.flatMap { [.text($0.key), .int($0.value)] })
  }

  /// A page that is stored again may expire earlier than a new one, by its lifetime divided by this.
  private static let slack: Int64 = 20

  /// Nil if the page doesn't exist or has expired.
  public func content(ofPage name: [UInt8], now: Int64) throws(RegistryError) -> [UInt8]? {
    try session.first(SQL.contentOfPage, [.text(name), .int(now)]) { $0.bytes(0) }
  }

  func purgeContent(_ values: [SQLValue]) throws(RegistryError) -> Int {
    var count = 0
    var freed: [[UInt8]: Int64] = [:]
    try session.run(SQL.purgeContent, values) { row in
      count += 1
      if let app = row.optionalBytes(0) { freed[app, default: 0] += row.int(1) }
    }
    try addContent(freed.mapValues { -$0 })
    return count
  }
}

extension SQL {
  static let keepMessage = Statement(
    into: "messages (message, id, noted_at)", values: "?1, ?2, ?3", "ON CONFLICT (message) DO NOTHING", .int, .blob, .int)
  static let noteWaiting = Statement(
    """
    INSERT INTO waiting (place, newest, until) VALUES (?1, ?2, ?3) ON CONFLICT (place) DO UPDATE SET
      newest = CASE WHEN excluded.newest > waiting.newest THEN excluded.newest ELSE waiting.newest END,
      until = CASE WHEN excluded.until > waiting.until THEN excluded.until ELSE waiting.until END
    """)
  static let newestWaiting = Statement("SELECT newest FROM waiting WHERE place = ?1")
  static let pageByDigest = Statement(rows: "name, until", from: "content_pages WHERE digest = ?1", .blob)
  static let keepPage = Statement(
    """
    INSERT INTO content_pages (digest, name, content, until, app) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (digest) DO UPDATE SET
      until = CASE WHEN excluded.until > content_pages.until THEN excluded.until ELSE content_pages.until END
    RETURNING name
    """)
  static let contentOfPage = Statement("SELECT content FROM content_pages WHERE name = ?1 AND until > ?2")
  static let contentOfApp = Statement("SELECT bytes FROM content_sizes WHERE app = ?1")
  static let addContent = Statement(
    """
    INSERT INTO content_sizes (app, bytes) VALUES (?1, ?2) ON CONFLICT (app) DO UPDATE SET
      bytes = content_sizes.bytes + excluded.bytes
    """)
}
