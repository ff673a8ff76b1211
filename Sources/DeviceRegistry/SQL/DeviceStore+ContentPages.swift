import PushCore

struct PageToKeep {
  /// Index of the answer.
  let place: Int
  let page: ContentPage
  let now: Int64
  /// True if the content exists and only its lifetime must be extended.
  var isKnown = false
}

extension DeviceStore {
  /// Answers the pages whose lifetime is long enough, and returns the others. So the pages of a broadcast need no write each.
  func unkept(_ pages: [PageToKeep], _ answers: inout [NoteAnswer]) throws(RegistryError) -> [PageToKeep] {
    let known = try session.ofEach(SQL.pageByDigest, pages.map { [.blob($0.page.digest)] }) { row in
      (name: row.bytes(0), until: row.int(1))
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

  /// Stores pages. If the application has no room for a page, the answer is nil.
  func keepPages(_ pages: [PageToKeep], _ answers: inout [NoteAnswer]) throws(RegistryError) {
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
    let values: [[SQLValue]] = kept.map {
      [
        .blob($0.page.digest), .text(ContentPage.makeName(makeSalt)), .blob($0.page.content), .int($0.now + $0.page.keep),
        .text($0.page.app),
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
    try session.runEach(SQL.addContent, sizes.map { [.text($0.key), .int($0.value)] })
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
  static let pageByDigest = Statement(rows: "SELECT name, until FROM content_pages WHERE digest = ?1", .blob)
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
