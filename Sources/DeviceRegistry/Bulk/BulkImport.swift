import PushCore

/// The forms in which devices are imported and exported.
public enum BulkFormat: String, CaseIterable, Sendable {
  /// A header line with the names of `register`'s fields; `topics` separated by `|`.
  case csv
  /// One change a line (docs/registry.md).
  case ndjson
}

/// What an import tells while it goes on.
public protocol BulkImportHandler: AnyObject {
  /// A row that was refused: it costs only itself.
  /// - Parameters:
  ///   - row: its text, where ``BulkImport`` keeps it.
  ///   - line: the line, from 1, on which it begins.
  func rowRefused(_ row: [UInt8], line: Int, _ error: ChangeError, _ reason: String)
  /// After each portion that was stored.
  func progressed(_ count: BulkCount)
}

public struct BulkCount: Equatable, Sendable {
  /// Rows read, stored and refused. A row with an unknown device in its list counts as refused; the list's other entries are stored.
  public var rows = 0
  public var stored = 0
  public var refused = 0
  /// Bytes taken from the input.
  public var bytes = 0
}

/// Why an import can't go on.
public enum BulkError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The header line names no columns of ours.
  case header(String)
  /// Everything up to ``BulkCount/stored`` is in the registry; importing the file again does no harm.
  case store(RegistryError)

  public var description: String {
    switch self {
    case .header(let why): "header line: \(why)"
    case .store(let error): error.description
    }
  }
}

/// Reads devices from a stream of bytes and stores them portion by portion, one transaction each. Memory is bounded by a portion.
public final class BulkImport {
  public private(set) var count = BulkCount()

  /// Why a row was refused, in a file of refused rows: a column or key that is ignored.
  public static let reason = "reason"

  /// The header line of CSV, once it has been read.
  public private(set) var header: [UInt8] = []

  private let store: (any DeviceStore)?
  private let format: BulkFormat
  private let apps: Set<[UInt8]>
  private let defaultApp: [UInt8]?
  private let limits: RegistryLimits
  private let now: Int64
  private weak var handler: (any BulkImportHandler)?
  private var csv = CSVRows()
  /// Nil for one that is ignored.
  private var columns: [ChangeField?]?
  private var lines = LineReader()
  private var isFirst = true
  private var pending: [(line: Int, row: [UInt8], change: RegistryChange)] = []
  private let keepsRows: Bool

  /// Rows in one transaction: enough that its commit doesn't count, few enough that others' writes aren't held up for long.
  private static let portion = 10_000

  /// - Parameters:
  ///   - store: nil where rows are only to be read: what just the registry knows to refuse counts as stored.
  ///   - apps: those that are configured; a row of another one could be reached by nobody, and is refused.
  ///   - defaultApp: what `app` is where a row has none.
  ///   - now: Unix milliseconds; when the devices count as registered whose rows don't say.
  ///   - keepsRows: whether the handler is given the text of what is refused.
  public init(
    into store: (any DeviceStore)?, format: BulkFormat, apps: Set<[UInt8]>, defaultApp: [UInt8]?, now: Int64,
    handler: any BulkImportHandler, limits: RegistryLimits = RegistryLimits(), keepsRows: Bool = false
  ) {
    self.keepsRows = keepsRows
    self.store = store
    self.format = format
    self.apps = apps
    self.defaultApp = defaultApp
    self.now = now
    self.handler = handler
    self.limits = limits
  }

  /// The next bytes of the input, in portions of any size.
  public func feed(_ bytes: [UInt8]) throws(BulkError) {
    count.bytes += bytes.count
    var bytes = bytes[...]
    if isFirst, !bytes.isEmpty {
      isFirst = false
      // Spreadsheets put a byte-order mark before UTF-8.
      if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
    }
    switch format {
    case .csv: csv.append(bytes)
    case .ndjson: lines.append(bytes)
    }
    try read(isEnd: false)
  }

  /// The input is at its end: stores the rest.
  public func finish() throws(BulkError) {
    try read(isEnd: true)
    if format == .csv, columns == nil { throw .header("the file is empty") }
    try flush()
    do throws(RegistryError) { try store?.analyze() } catch { throw .store(error) }
  }

  private func read(isEnd: Bool) throws(BulkError) {
    switch format {
    case .csv:
      while let (line, row) = csv.next(isEnd: isEnd) {
        guard let columns else {
          columns = try readColumns(row)
          header = csv.row
          continue
        }
        take(line, row, columns)
        if pending.count >= Self.portion { try flush() }
      }
    case .ndjson:
      while let (line, text) = lines.next(isEnd: isEnd) {
        count.rows += 1
        switch text {
        case nil: refuse([], line, .invalidParameters, "the line is longer than \(LineReader.longestLine) bytes")
        case .some(let text):
          switch RegistryChange.parse(text, defaultApp: defaultApp, limits: limits, ignoring: Self.reason) {
          case .success(let change): take(change, text, line)
          case .failure(let refusal): refuse(text, line, refusal.code, refusal.reason)
          }
        }
        if pending.count >= Self.portion { try flush() }
      }
    }
  }

  private func readColumns(_ row: CSVRows.Row) throws(BulkError) -> [ChangeField?] {
    guard case .fields(let names) = row else { throw .header("can't be read") }
    var columns: [ChangeField?] = []
    for name in names {
      let text = String(decoding: name, as: UTF8.self)
      guard text != Self.reason else {
        columns.append(nil)
        continue
      }
      guard let field = ChangeField(rawValue: text), ChangeField.columns.contains(field) else {
        let known = ChangeField.columns.map(\.rawValue).joined(separator: ", ")
        throw .header(
          "column \(columns.count + 1) is none of \(known)"
            + Spelling.suggestion(for: text, among: ChangeField.columns.map(\.rawValue)))
      }
      guard !columns.contains(field) else { throw .header("column \(field.rawValue) is there twice") }
      columns.append(field)
    }
    guard columns.contains(.platform), columns.contains(.token) else {
      throw .header("the columns platform and token are needed")
    }
    guard defaultApp != nil || columns.contains(.app) else {
      throw .header("there is no column app, and no application is named for the rows (--app)")
    }
    return columns
  }

  private func take(_ line: Int, _ row: CSVRows.Row, _ columns: [ChangeField?]) {
    count.rows += 1
    guard case .fields(let fields) = row else {
      if case .broken(let why) = row { refuse(line, why) }
      return
    }
    guard fields.count == columns.count else {
      return refuse(line, "\(fields.count) fields, the header has \(columns.count)")
    }
    var builder = RegistrationBuilder(app: defaultApp)
    do throws(ChangeRefusal) {
      for (field, text) in zip(columns, fields) {
        guard let field, !text.isEmpty else { continue }
        if field == .topics {
          for topic in text.split(separator: UInt8(ascii: "|"), omittingEmptySubsequences: false) {
            try builder.set(.topics, Array(topic))
          }
        } else {
          guard text.isUTF8 else { throw ChangeRefusal(.invalidParameters, "\(field.rawValue): not UTF-8") }
          try builder.set(field, text)
        }
      }
      take(.register(try builder.registration()), keepsRows ? csv.row : [], line)
    } catch {
      refuse(keepsRows ? csv.row : [], line, error.code, error.reason)
    }
  }

  private func take(_ change: RegistryChange, _ row: [UInt8], _ line: Int) {
    guard apps.contains(change.app) else {
      return refuse(row, line, .invalidParameters, "app: no application of this name is configured")
    }
    pending.append((line, keepsRows ? row : [], change))
  }

  private func flush() throws(BulkError) {
    guard !pending.isEmpty else { return }
    let portion = pending
    pending.removeAll(keepingCapacity: true)
    guard let store else {
      count.stored += portion.count
      handler?.progressed(count)
      return
    }
    let answers: [ChangeAnswer]
    do throws(RegistryError) {
      let registrations = portion.compactMap { if case .register(let registration) = $0.change { registration } else { nil } }
      answers =
        registrations.count == portion.count
        ? try store.load(registrations, now: now) : try store.apply(portion.map(\.change), now: now)
    } catch { throw .store(error) }
    for (row, answer) in zip(portion, answers) {
      if let failure = answer.failure { refuse(row.row, row.line, failure.code, failure.reason) } else { count.stored += 1 }
    }
    handler?.progressed(count)
  }

  private func refuse(_ line: Int, _ reason: String) { refuse(keepsRows ? csv.row : [], line, .invalidParameters, reason) }

  private func refuse(_ row: [UInt8], _ line: Int, _ error: ChangeError, _ reason: String) {
    count.refused += 1
    handler?.rowRefused(row, line: line, error, reason)
  }
}

extension [UInt8] {
  var isUTF8: Bool { allSatisfy { $0 < 0x80 } || String(validating: self, as: UTF8.self) != nil }
}
