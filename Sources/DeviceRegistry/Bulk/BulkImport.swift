import PushCore

public enum BulkFormat: String, CaseIterable, Sendable {
  /// A header line with the field names of `register`. `topics` are separated by `|`.
  case csv
  /// One change per line (docs/send/registry.md).
  case ndjson
}

/// A row that was refused. Other rows are not affected.
public struct BulkRefusal {
  /// Its text, if ``BulkImport`` keeps rows.
  public let row: [UInt8]
  /// The CSV header line; empty for NDJSON.
  public let header: [UInt8]
  /// The line on which it begins, from 1.
  public let line: Int
  public let error: ChangeError
  public let reason: String
}

public struct BulkCount: Equatable, Sendable {
  /// Numbers of rows. A row with an unknown device in its list counts as refused; the other entries of the list are stored.
  public var rows = 0
  public var stored = 0
  public var refused = 0
  /// Bytes read from the input.
  public var bytes = 0
}

public enum BulkError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The header line has an unknown column.
  case header(String)
  /// The first ``BulkCount/stored`` rows are in the registry. The next ``BulkImport/feed(_:)`` or ``BulkImport/finish()`` tries the
  /// others again. Importing the file again is safe.
  case store(RegistryError)

  public var description: String {
    switch self {
    case .header(let why): "header line: \(why)"
    case .store(let error): error.description
    }
  }
}

/// Reads devices from a byte stream and stores them in portions, one transaction each. A portion bounds the memory.
public final class BulkImport {
  public private(set) var count = BulkCount()

  /// The column or key with the reason in a file of refused rows. An import ignores it.
  public static let reason = "reason"

  private var header: [UInt8] = []
  private let store: DeviceStore?
  private let format: BulkFormat
  private let apps: Set<[UInt8]>
  private let defaultApp: [UInt8]?
  private let limits: RegistryLimits
  private let rules: SubscriptionRules.LookUp
  private let now: Int64
  private let refused: (BulkRefusal) -> Void
  private var csv = CSVRows()
  private var columns: [ChangeField?]?
  private var lines = LineReader()
  private var isFirst = true
  private var pending: [(line: Int, row: [UInt8], change: RegistryChange)] = []
  /// The value of ``BulkCount/bytes`` at the last transaction.
  private var bytesStored = 0
  private let keepsRows: Bool

  /// Rows per transaction: enough to make commits cheap, few enough not to block other writers for long.
  private static let portion = 10_000
  /// A transaction also begins after so many bytes of input.
  var portionBytes = 64 << 20

  /// - Parameters:
  ///   - store: nil to check rows only. Rows that only the registry could refuse then count as stored.
  ///   - apps: the configured apps. Rows of other apps are refused.
  ///   - defaultApp: the app of rows without `app`.
  ///   - now: Unix milliseconds; the registration time of rows without one.
  ///   - keepsRows: true to pass the text of refused rows.
  public init(
    into store: DeviceStore?, format: BulkFormat, apps: Set<[UInt8]>, defaultApp: [UInt8]?, now: Int64,
    limits: RegistryLimits = RegistryLimits(), rules: @escaping SubscriptionRules.LookUp = { _, _ in nil },
    keepsRows: Bool = false, refused: @escaping (BulkRefusal) -> Void
  ) {
    self.keepsRows = keepsRows
    self.store = store
    self.format = format
    self.apps = apps
    self.defaultApp = defaultApp
    self.now = now
    self.refused = refused
    self.limits = limits
    self.rules = rules
  }

  /// Processes the next bytes of the input, in portions of any size.
  public func feed(_ bytes: [UInt8]) throws(BulkError) {
    count.bytes += bytes.count
    var bytes = bytes[...]
    if isFirst, !bytes.isEmpty {
      isFirst = false
      // Spreadsheets write a byte-order mark before UTF-8.
      if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
    }
    switch format {
    case .csv: csv.append(bytes)
    case .ndjson: lines.append(bytes)
    }
    try read(isEnd: false)
  }

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
        try flushIfFull()
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
        try flushIfFull()
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
          "column \(columns.count + 1) is not one of \(known)"
            + Spelling.suggestion(for: text, among: ChangeField.columns.map(\.rawValue)))
      }
      guard !columns.contains(field) else { throw .header("column \(field.rawValue) appears twice") }
      columns.append(field)
    }
    guard columns.contains(.platform), columns.contains(.token) || columns.contains(.endpoint) else {
      throw .header("the columns platform and token are needed, or for web push endpoint, p256dh and auth")
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
          guard text.isUTF8 else { throw .invalid("\(field.rawValue): not UTF-8") }
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
    switch change.following(rules) {
    case .success(let change): pending.append((line, keepsRows ? row : [], change))
    case .failure(let refusal): refuse(row, line, refusal.code, refusal.reason)
    }
  }

  private func flushIfFull() throws(BulkError) {
    if pending.count >= Self.portion || count.bytes - bytesStored >= portionBytes { try flush() }
  }

  private func flush() throws(BulkError) {
    guard !pending.isEmpty else { return }
    guard let store else {
      count.stored += pending.count
      return forgetPending()
    }
    let answers: [ChangeAnswer]
    do throws(RegistryError) {
      let registrations = pending.compactMap { if case .register(let registration) = $0.change { registration } else { nil } }
      answers =
        registrations.count == pending.count
        ? try store.load(registrations, now: now) : try store.apply(pending.map(\.change), now: now)
    } catch { throw .store(error) }
    for (row, answer) in zip(pending, answers) {
      if let failure = answer.failure { refuse(row.row, row.line, failure.code, failure.reason) } else { count.stored += 1 }
    }
    forgetPending()
  }

  private func forgetPending() {
    bytesStored = count.bytes
    pending.removeAll(keepingCapacity: true)
  }

  private func refuse(_ line: Int, _ reason: String) { refuse(keepsRows ? csv.row : [], line, .invalidParameters, reason) }

  private func refuse(_ row: [UInt8], _ line: Int, _ error: ChangeError, _ reason: String) {
    count.refused += 1
    refused(BulkRefusal(row: row, header: header, line: line, error: error, reason: reason))
  }
}

extension [UInt8] {
  var isUTF8: Bool { allSatisfy { $0 < 0x80 } || String(validating: self, as: UTF8.self) != nil }
}
