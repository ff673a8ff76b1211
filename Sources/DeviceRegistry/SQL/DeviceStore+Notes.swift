import PushCore

/// Stores notes that arrive together. Each kind is processed separately, in order of arrival.
extension DeviceStore {
  /// Stores several notes, with the same effect as one by one. After an error it can be repeated, even if some are stored.
  /// - Parameter notes: each with its time.
  /// - Returns: the answers in order, and whether anything was written.
  public func note(_ notes: [(note: Note, now: Int64)]) throws(RegistryError) -> (answers: [NoteAnswer], hasWritten: Bool) {
    var hasWritten = false
    var answers = [NoteAnswer](repeating: .message, count: notes.count)
    var counts: [BadgeTally.Count] = []
    var messages: [(key: Int64, id: [UInt8], now: Int64)] = []
    var pages: [PageToKeep] = []
    var requests = RequestNotes()
    for (place, (note, now)) in notes.enumerated() {
      switch note {
      case .badges(let count): counts.append(.init(place: place, count: count, now: now))
      case .message(let id): messages.append((MessageKey.of(id), id, now))
      case .page(let page): pages.append(.init(place: place, page: page, now: now))
      case .claim(let name, let message, let body, let until):
        if requests.has(name) { hasWritten = try noteRequests(&requests, &answers) || hasWritten }
        requests.add(.init(place: place, name: name, message: message, body: body, until: until, now: now))
      case .settle(let name, let state, let until, let isLate):
        if requests.has(name) { hasWritten = try noteRequests(&requests, &answers) || hasWritten }
        requests.add(.init(place: place, name: name, state: state, until: until, isLate: isLate, now: now))
      }
    }
    if counts.count + messages.count + pages.count > 0 {
      var tally = BadgeTally()
      var isNew = pages
      let isWritten = try lookAndWrite { () throws(RegistryError) in
        tally = try self.tally(counts)
        isNew = try unkept(pages, &answers)
        guard tally.isWriting || !messages.isEmpty || !isNew.isEmpty else {
          try countBadges(&tally)
          return nil
        }
        // `allNotes`, because each page's size is counted once.
        return pages.isEmpty ? .notes(of: tally.apps) : .allNotes
      } write: { () throws(RegistryError) in
        // Shared rows are written in the order of their keys. Otherwise writers for several applications could deadlock.
        let ordered = messages.sorted { $0.key < $1.key }
        try session.runEach(SQL.keepMessage, ordered.map { [.int($0.key), .blob($0.id), .int($0.now)] })
        try keepPages(isNew.sorted { $0.page.digest.lexicographicallyPrecedes($1.page.digest) }, &answers)
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
}

extension SQL {
  static let keepMessage = Statement(
    rows: "INSERT INTO messages (message, id, noted_at) VALUES (?1, ?2, ?3) ON CONFLICT (message) DO NOTHING",
    .int, .blob, .int)
}
