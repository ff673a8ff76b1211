import PushCore

/// Content that pushes have no room for.
extension SQLStore {
  func keepPage(_ page: ContentPage, now: Int64) throws(RegistryError) -> [UInt8] {
    var known: (name: [UInt8], until: Int64)?
    try session.run(SQL.pageByDigest, [.blob(page.digest)]) { row in known = (row.bytes(0), row.int(1)) }
    // The pages of a broadcast need no write each.
    if let known, known.until >= now + page.keep - page.keep / Self.slack { return known.name }
    let name = ContentPage.makeName(makeSalt)
    return try transaction(.notes) { () throws(RegistryError) in
      var stored: [UInt8]?
      let values: [SQLValue] = [.blob(page.digest), .text(name), .blob(page.content), .int(now + page.keep)]
      try session.run(SQL.keepPage, values) { row in stored = row.bytes(0) }
      guard let stored else { throw Self.noRow }
      return stored
    }
  }

  /// Of its life, the part by which a page that is kept again may end earlier than a new one.
  private static var slack: Int64 { 20 }

  func content(ofPage name: [UInt8], now: Int64) throws(RegistryError) -> [UInt8]? {
    var content: [UInt8]?
    try session.run(SQL.contentOfPage, [.text(name), .int(now)]) { row in content = row.bytes(0) }
    return content
  }

  func purgeContent(before: Int64, limit: Int) throws(RegistryError) -> Int {
    try transaction(.notes) { () throws(RegistryError) in
      try session.run(SQL.purgeContent, [.int(before), .int(Int64(limit))])
    }
  }
}

extension SQL {
  static let pageByDigest = Statement("SELECT name, until FROM content_pages WHERE digest = ?1")
  static let keepPage = Statement(
    """
    INSERT INTO content_pages (digest, name, content, until) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (digest) DO UPDATE SET
      until = CASE WHEN excluded.until > content_pages.until THEN excluded.until ELSE content_pages.until END
    RETURNING name
    """)
  static let contentOfPage = Statement("SELECT content FROM content_pages WHERE name = ?1 AND until > ?2")
  static let purgeContent = Statement(
    """
    DELETE FROM content_pages WHERE digest IN (
      SELECT digest FROM content_pages WHERE until <= ?1 ORDER BY until LIMIT ?2)
    """)
}
