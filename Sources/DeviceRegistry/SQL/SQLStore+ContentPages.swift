import PushCore

/// Content to be kept.
struct PageToKeep {
  /// Among the answers.
  let place: Int
  let page: ContentPage
  let now: Int64
  /// Its content is there, and is to be kept for longer.
  var isKnown = false
}

/// Content that pushes have no room for.
extension SQLStore {
  /// Those that aren't kept long enough yet; the others are answered: the pages of a broadcast need no write each.
  func unkept(_ pages: [PageToKeep], _ answers: inout [NoteAnswer]) throws(RegistryError) -> [PageToKeep] {
    var known = [(name: [UInt8], until: Int64)?](repeating: nil, count: pages.count)
    try session.runRows(SQL.pageByDigest, [.blobs(pages.map(\.page.digest))]) { index, row in
      known[index] = (row.bytes(0), row.int(1))
    }
    var rest: [PageToKeep] = []
    for (var keeping, known) in zip(pages, known) {
      let keep = keeping.page.keep
      if let known, known.until >= keeping.now + keep - keep / Self.slack {
        answers[keeping.place] = .page(known.name)
      } else {
        keeping.isKnown = known != nil
        rest.append(keeping)
      }
    }
    return rest
  }

  /// A page for which its application has no room is answered with nil.
  func keepPages(_ pages: [PageToKeep], _ answers: inout [NoteAnswer]) throws(RegistryError) {
    guard !pages.isEmpty else { return }
    var known = Set(pages.filter(\.isKnown).map(\.page.digest))
    var used: [[UInt8]: Int64] = [:]
    var added: [[UInt8]: Int64] = [:]
    var kept: [PageToKeep] = []
    for keeping in pages {
      let page = keeping.page
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
    var names = [[UInt8]?](repeating: nil, count: kept.count)
    let values: [[SQLValue]] = kept.map {
      [
        .blob($0.page.digest), .text(ContentPage.makeName(makeSalt)), .blob($0.page.content), .int($0.now + $0.page.keep),
        .text($0.page.app),
      ]
    }
    try session.runEach(SQL.keepPage, values) { index, row in names[index] = row.bytes(0) }
    for (keeping, name) in zip(kept, names) {
      guard let name else { throw Self.noRow }
      answers[keeping.place] = .page(name)
    }
    try addContent(added)
  }

  private func addContent(_ sizes: [[UInt8]: Int64]) throws(RegistryError) {
    let sizes = sizes.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    try session.runEach(SQL.addContent, sizes.map { [.text($0.key), .int($0.value)] }) { _, _ in }
  }

  /// Of its life, the part by which a page that is kept again may end earlier than a new one.
  private static var slack: Int64 { 20 }

  func content(ofPage name: [UInt8], now: Int64) throws(RegistryError) -> [UInt8]? {
    var content: [UInt8]?
    try session.run(SQL.contentOfPage, [.text(name), .int(now)]) { row in content = row.bytes(0) }
    return content
  }

  func purgeContent(before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(.allNotes) { () throws(RegistryError) in
      var count = 0
      var freed: [[UInt8]: Int64] = [:]
      try session.run(SQL.purgeContent, [.int(before), .int(Int64(limit))]) { row in
        count += 1
        if let app = row.optionalBytes(0) { freed[app, default: 0] += row.int(1) }
      }
      try addContent(freed.mapValues { -$0 })
      return count
    }
  }
}

extension SQL {
  static let pageByDigest = RowsStatement("SELECT name, until FROM content_pages WHERE digest = ?1", .blob)
  static let keepPage = Statement(
    """
    INSERT INTO content_pages (digest, name, content, until, app) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (digest) DO UPDATE SET
      until = CASE WHEN excluded.until > content_pages.until THEN excluded.until ELSE content_pages.until END
    RETURNING name
    """)
  static let contentOfPage = Statement("SELECT content FROM content_pages WHERE name = ?1 AND until > ?2")
  static let purgeContent = Statement(
    """
    DELETE FROM content_pages WHERE digest IN (
      SELECT digest FROM content_pages WHERE until <= ?1 ORDER BY until LIMIT ?2)
    RETURNING app, length(content)
    """)
  static let contentOfApp = Statement("SELECT bytes FROM content_sizes WHERE app = ?1")
  static let addContent = Statement(
    """
    INSERT INTO content_sizes (app, bytes) VALUES (?1, ?2) ON CONFLICT (app) DO UPDATE SET
      bytes = content_sizes.bytes + excluded.bytes
    """)
}
