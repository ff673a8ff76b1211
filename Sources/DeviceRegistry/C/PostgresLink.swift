import CPostgres
import Glibc
import Reactor
import Wire

/// One libpq connection, from connecting to its loss. It uses the asynchronous API, so every wait has a time limit.
final class PostgresLink {
  private let handle: OpaquePointer
  private let options: StoreOptions
  private var prepared: [Bool] = []
  /// True if the connection is unusable; the owner then drops it.
  private(set) var isLost = false

  /// - Parameters:
  ///   - defaults: parameters that the location overrides.
  ///   - overrides: parameters that override the location.
  init(
    location: String, defaults: PostgresHosts.Parameters, overrides: PostgresHosts.Parameters, options: StoreOptions
  ) throws(RegistryError) {
    self.options = options
    handle = try Self.connect(location, defaults, overrides, options)
    try execute(
      """
      SET search_path = pushfleet; SET client_min_messages = warning; SET statement_timeout = \(options.statementTimeout);
      SET idle_in_transaction_session_timeout = \(options.statementTimeout * 4)
      """)
  }

  deinit { PQfinish(handle) }

  private static func connect(
    _ location: String, _ defaults: PostgresHosts.Parameters, _ overrides: PostgresHosts.Parameters, _ options: StoreOptions
  ) throws(RegistryError) -> OpaquePointer {
    // The location overrides the parameters before it. The parameters after it override the location.
    let common = [
      ("fallback_application_name", "pushfleet"), ("tcp_user_timeout", "\(options.statementTimeout * 2)"),
      ("keepalives_idle", "30"), ("keepalives_interval", "10"), ("keepalives_count", "3"), ("client_encoding", "UTF8"),
    ]
    let parameters = common + defaults + [("dbname", location)] + overrides
    let names = parameters.map { strdup($0.0) }
    let values = parameters.map { strdup($0.1) }
    defer { for text in names + values { free(text) } }
    var namePointers = names.map { UnsafePointer<CChar>($0) } + [nil]
    var valuePointers = values.map { UnsafePointer<CChar>($0) } + [nil]
    guard let handle = PQconnectStartParams(&namePointers, &valuePointers, 1) else {
      throw .unavailable(.overloaded, "out of memory")
    }
    PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
    PQsetNoticeReceiver(handle, { _, _ in }, nil)
    let deadline = now() + options.connectTimeout
    var status = PQstatus(handle) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
    while status != PGRES_POLLING_OK {
      if status == PGRES_POLLING_FAILED {
        let error = PostgresFault.connecting(message(handle))
        PQfinish(handle)
        throw error
      }
      guard isReady(handle, status == PGRES_POLLING_READING ? POLLIN : POLLOUT, until: deadline) else {
        PQfinish(handle)
        throw .unavailable(.down, "no connection within \(options.connectTimeout) ms")
      }
      status = PQconnectPoll(handle)
    }
    PQsetnonblocking(handle, 1)
    return handle
  }

  // MARK: Statements

  func run(_ statement: Statement, _ values: [SQLValue], _ each: (SQLRow) -> Void) throws(RegistryError) -> Int {
    let deadline = callDeadline()
    try prepare(statement, deadline)
    try send(statement, values[...])
    return try collect(deadline) { result in
      for row in 0..<PQntuples(result) { each(.postgres(result, row: row)) }
    }
  }

  /// Sends all sets before it reads the first answer: one round trip.
  func runPipelined(
    _ statement: Statement, _ sets: ArraySlice<SQLValue>, _ each: (Int, SQLRow) -> Void
  ) throws(RegistryError) {
    let deadline = callDeadline()
    try prepare(statement, deadline)
    guard PQenterPipelineMode(handle) == 1 else { throw lost() }
    for start in stride(from: sets.startIndex, to: sets.endIndex, by: statement.width) {
      try send(statement, sets[start..<start + statement.width])
    }
    guard PQpipelineSync(handle) == 1 else { throw lost() }
    var failure: RegistryError?
    var index = 0
    while true {
      guard let result = try next(deadline) else {
        index += 1
        guard index * statement.width <= sets.count else { throw lost() }
        continue
      }
      defer { PQclear(result) }
      let status = PQresultStatus(result)
      if status == PGRES_PIPELINE_SYNC { break }
      if status == PGRES_PIPELINE_ABORTED { continue }
      if let error = PostgresFault.error(result) {
        failure = failure ?? error
      } else if failure == nil {
        for row in 0..<PQntuples(result) { each(index, .postgres(result, row: row)) }
      }
    }
    guard PQexitPipelineMode(handle) == 1 else { throw lost() }
    if let failure { throw failure }
  }

  func execute(_ sql: String) throws(RegistryError) {
    guard PQsendQuery(handle, sql) == 1 else { throw lost() }
    _ = try collect(callDeadline()) { _ in }
  }

  func copy(_ sql: String, _ rows: [UInt8]) throws(RegistryError) {
    guard PQsendQuery(handle, sql) == 1 else { throw lost() }
    let deadline = callDeadline()
    guard let started = try next(deadline) else { throw lost() }
    defer { PQclear(started) }
    guard PQresultStatus(started) == PGRES_COPY_IN else {
      let error = PostgresFault.error(started) ?? .unusable(.broken, "the server doesn't accept COPY")
      _ = try collect(deadline) { _ in }
      throw error
    }
    var sent = 0
    while sent < rows.count {
      let count = min(64 * 1024, rows.count - sent)
      let accepted = rows.withUnsafeBytes { buffer in
        PQputCopyData(handle, buffer.baseAddress?.advanced(by: sent).assumingMemoryBound(to: CChar.self), Int32(count))
      }
      guard accepted >= 0 else { throw lost() }
      if accepted == 1 { sent += count }
      try flush(deadline)
    }
    guard PQputCopyEnd(handle, nil) == 1 else { throw lost() }
    _ = try collect(deadline) { _ in }
  }

  private func prepare(_ statement: Statement, _ deadline: Int64) throws(RegistryError) {
    if statement.id < prepared.count, prepared[statement.id] { return }
    guard PQsendPrepare(handle, "p\(statement.id)", statement.text(.postgres), 0, nil) == 1 else { throw lost() }
    _ = try collect(deadline) { _ in }
    while prepared.count <= statement.id { prepared.append(false) }
    prepared[statement.id] = true
  }

  private func send(_ statement: Statement, _ values: ArraySlice<SQLValue>) throws(RegistryError) {
    var arena: [UInt8] = []
    var ranges: [(start: Int, count: Int)?] = []
    for value in values {
      let start = arena.count
      switch value {
      case .null:
        ranges.append(nil)
        continue
      case .int(let number): arena.appendBigEndian(number)
      case .text(let bytes), .blob(let bytes): arena += bytes
      }
      ranges.append((start, arena.count - start))
    }
    // Ensures an address even if all values are empty: a null pointer would mean NULL.
    arena.append(0)
    let accepted = arena.withUnsafeBytes { buffer in
      let pointers = ranges.map { range in
        range.flatMap { buffer.baseAddress?.advanced(by: $0.start).assumingMemoryBound(to: CChar.self) }
      }
      let lengths = ranges.map { Int32($0?.count ?? 0) }
      let formats = [Int32](repeating: 1, count: values.count)
      return PQsendQueryPrepared(handle, "p\(statement.id)", Int32(values.count), pointers, lengths, formats, 1)
    }
    guard accepted == 1 else { throw lost() }
  }

  /// Reads all results of the command and returns the number of changed rows.
  private func collect(_ deadline: Int64, _ each: (OpaquePointer) -> Void) throws(RegistryError) -> Int {
    var failure: RegistryError?
    var changed = 0
    while let result = try next(deadline) {
      defer { PQclear(result) }
      if let error = PostgresFault.error(result) {
        failure = failure ?? error
        if PQstatus(handle) == CONNECTION_BAD || PostgresFault.endsConnection(result) { isLost = true }
        continue
      }
      changed = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
      if failure == nil { each(result) }
    }
    if let failure { throw failure }
    return changed
  }

  private func next(_ deadline: Int64) throws(RegistryError) -> OpaquePointer? {
    try flush(deadline)
    while PQisBusy(handle) != 0 {
      guard Self.isReady(handle, POLLIN, until: deadline) else { throw late() }
      guard PQconsumeInput(handle) == 1 else { throw lost() }
    }
    return PQgetResult(handle)
  }

  private func flush(_ deadline: Int64) throws(RegistryError) {
    while true {
      let state = PQflush(handle)
      if state == 0 { return }
      guard state == 1 else { throw lost() }
      guard Self.isReady(handle, POLLIN | POLLOUT, until: deadline) else { throw late() }
      guard PQconsumeInput(handle) == 1 else { throw lost() }
    }
  }

  /// The server's limit expires first. This limit is for a server that doesn't answer at all.
  private func callDeadline() -> Int64 { Self.now() + options.statementTimeout + options.statementTimeout / 5 + 500 }

  private func lost() -> RegistryError {
    isLost = true
    return .unavailable(.down, "connection lost: \(Self.message(handle))")
  }

  private func late() -> RegistryError {
    isLost = true
    return .unavailable(.slow, "no answer within \(options.statementTimeout) ms")
  }

  private static func isReady(_ handle: OpaquePointer, _ events: Int32, until deadline: Int64) -> Bool {
    while true {
      let left = deadline - now()
      guard left > 0 else { return false }
      var entry = pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0)
      let count = poll(&entry, 1, Int32(min(left, 60_000)))
      if count > 0 || count < 0 && errno != EINTR { return true }
    }
  }

  private static func now() -> Int64 { SystemClock.monotonic.nanoseconds / 1_000_000 }

  private static func message(_ handle: OpaquePointer) -> String {
    PQerrorMessage(handle).map { PostgresFault.firstLine(String(cString: $0)) } ?? ""
  }
}
