import DeviceRegistry
import Foundation
import PushCore
import Worker

/// `devices import`: streams files into the registry.
enum DevicesImport {
  private static let chunk = 1 << 18

  static func run(_ arguments: [String]) throws {
    let options = try Options(arguments, values: ["config", "app", "format"], flags: ["json"])
    let given = try options.choice("format", of: BulkFormat.allCases.map(\.rawValue)).flatMap(BulkFormat.init(rawValue:))
    guard !options.operands.isEmpty else { throw CommandFailure(.usage, "name at least one file of devices, or -") }
    let files = try options.operands.map(ImportFile.init)
    let session = try RegistrySession(options, isReading: false, store: .bulk)
    let app = try session.optionalApp(options)

    let account = ImportAccount(totalBytes: files.reduce(0) { $0 + $1.size })
    let begun = ContinuousClock.now
    var stopped: CommandFailure?
    for file in files where stopped == nil {
      account.begin(file.name)
      do { try load(file, given, app, session, account) } catch let failure as CommandFailure { stopped = failure }
    }
    account.finish()
    let seconds = (ContinuousClock.now - begun) / .seconds(1)
    if account.total.rows > 0 || stopped == nil { report(account, seconds, asJSON: options.has("json")) }
    if let stopped { throw stopped }
    if account.total.refused > 0 { throw CommandFailure(.badInput, "\(account.total.refused) of the rows are refused") }
  }

  private static func load(
    _ file: ImportFile, _ given: BulkFormat?, _ app: [UInt8]?, _ session: RegistrySession, _ account: ImportAccount
  ) throws {
    var bytes = try file.read(chunk)
    let format = given ?? file.format(bytes)
    let load = BulkImport(
      into: session.store, format: format, apps: Set(session.configuration.apps.map { Array($0.id.utf8) }), defaultApp: app,
      now: RegistrySession.now, handler: account, limits: session.configuration.registryLimits)
    defer { account.end(load.count) }
    do {
      while !bytes.isEmpty {
        try load.feed(bytes)
        account.update(load.count)
        bytes = try file.read(chunk)
      }
      try load.finish()
    } catch let error as BulkError {
      throw failure(error, file.name)
    }
  }

  private static func failure(_ error: BulkError, _ file: String) -> CommandFailure {
    switch error {
    case .header: CommandFailure(.badInput, "\(file), line 1: \(error)")
    case .store(let cause):
      CommandFailure(ExitStatus(of: cause), "\(cause); what was stored stays, and importing the files again does no harm")
    }
  }

  private static func report(_ account: ImportAccount, _ seconds: Double, asJSON: Bool) {
    let count = account.total
    let rate = seconds > 0 ? Double(count.rows) / seconds : 0
    guard asJSON else {
      let refused = count.refused > 0 ? ", \(count.refused) refused" : ""
      return Terminal.say(
        "pushfleet: \(count.stored) of \(count.rows) rows stored\(refused), in \(String(format: "%.1f", seconds)) s, "
          + "\(Int(rate)) rows/s")
    }
    var line = JSONObjectWriter()
    line.set("rows", Int64(count.rows))
    line.set("stored", Int64(count.stored))
    line.set("refused", Int64(count.refused))
    line.set("seconds", seconds)
    line.set("rows_per_second", Int64(rate))
    Terminal.print(line.closed())
  }
}

/// A file of devices, or standard input.
private struct ImportFile {
  let name: String
  /// Bytes; 0 where it isn't known.
  let size: Int
  private let handle: FileHandle

  init(_ path: String) throws(CommandFailure) {
    name = path == "-" ? "standard input" : path
    if path == "-" {
      handle = .standardInput
      size = 0
    } else {
      guard let facts = try? FileManager.default.attributesOfItem(atPath: path),
        facts[.type] as? FileAttributeType != .typeDirectory, let opened = FileHandle(forReadingAtPath: path)
      else { throw CommandFailure(.badInput, "\(Shown.path(path)) cannot be read") }
      handle = opened
      size = facts[.size] as? Int ?? 0
    }
  }

  func read(_ count: Int) throws(CommandFailure) -> [UInt8] {
    do { return [UInt8](try handle.read(upToCount: count) ?? Data()) } catch {
      throw CommandFailure(.badInput, "\(name) cannot be read further: \(error.localizedDescription)")
    }
  }

  /// By the name's ending, else by how it begins: only NDJSON begins with a brace.
  func format(_ beginning: [UInt8]) -> BulkFormat {
    if name.hasSuffix(".csv") { return .csv }
    if name.hasSuffix(".ndjson") || name.hasSuffix(".jsonl") { return .ndjson }
    let mark: Set<UInt8> = [0xEF, 0xBB, 0xBF, 0x20, 0x09, 0x0A, 0x0D]
    return beginning.first { !mark.contains($0) } == UInt8(ascii: "{") ? .ndjson : .csv
  }
}

/// Totals of an import of several files, printed while it runs.
private final class ImportAccount: BulkImportHandler {
  private(set) var total = (rows: 0, stored: 0, refused: 0, bytes: 0)
  private var file = ""
  private var bar: ProgressBar?

  /// - Parameter totalBytes: 0 where it isn't known: then there is no bar.
  init(totalBytes: Int) {
    if totalBytes > 0 { bar = ProgressBar("importing", total: totalBytes) }
  }

  func begin(_ file: String) { self.file = file }

  func update(_ count: BulkCount) { bar?.update(total.bytes + count.bytes) }

  func end(_ count: BulkCount) {
    update(count)
    total.rows += count.rows
    total.stored += count.stored
    total.refused += count.refused
    total.bytes += count.bytes
  }

  func finish() { bar?.finish() }

  func rowRefused(line: Int, _ error: ChangeError, _ reason: String) {
    let sentence = "\(file), line \(line): \(error.rawValue): \(reason.printable)"
    if bar == nil { Terminal.complain(sentence) } else { bar?.interrupt(sentence) }
  }

  func progressed(_ count: BulkCount) {}
}
