import DeviceRegistry
import Foundation
import PushCore
import Settings

enum DevicesImport {
  private static let chunk = 1 << 18

  static func run(_ options: Options) throws {
    let given = try options.choice("format", of: BulkFormat.allCases.map(\.rawValue)).flatMap(BulkFormat.init(rawValue:))
    guard !options.operands.isEmpty else { throw CommandFailure(.usage, "name at least one file of devices, or -") }
    guard options["rejects"] == nil || options.operands.count == 1 else {
      throw CommandFailure(.usage, "--rejects is for one file: import the files one by one")
    }
    let files = try options.operands.map(InputFile.init)
    let session = options.has("dry-run") ? nil : try RegistrySession(options, isReading: false, store: .bulk)
    let configuration = try session?.configuration ?? options.configuration()
    let app = try configuration.application(options)
    let account = ImportAccount(
      options.operands, rejects: try options["rejects"].map { try RejectsFile($0, source: options.operands[0]) })
    let interruption = try Interruption()
    let begun = ContinuousClock.now
    var stopped: CommandFailure?
    func load(_ format: BulkFormat) throws -> BulkImport {
      BulkImport(
        into: session?.store, format: format, apps: Set(configuration.apps.map { Array($0.id.utf8) }), defaultApp: app,
        now: RegistrySession.now, limits: configuration.registryLimits, rules: try configuration.subscriptionRules(),
        keepsRows: account.rejects != nil, refused: account.refused)
    }
    let harm = session == nil ? "nothing was stored" : stays
    for file in files where stopped == nil {
      account.file = file.name
      do {
        let interrupted = CommandFailure(.interrupted, "interrupted in \(file.name): \(harm)")
        guard try read(file, given, account, unless: interruption, into: load) else { throw interrupted }
      } catch let failure as CommandFailure { stopped = failure }
    }
    account.finish()
    let seconds = (ContinuousClock.now - begun) / .seconds(1)
    if account.total.rows > 0 || stopped == nil {
      report(account, seconds, isDryRun: session == nil, options)
    }
    if let stopped { throw stopped }
    if account.total.refused > 0 {
      let place = options["rejects"].map { ", and written to \(SafeText.path($0))" } ?? ""
      throw CommandFailure(.badInput, "\(account.total.refused) of the rows are refused\(place)")
    }
  }

  /// - Returns: false if a signal came before the end.
  private static func read(
    _ file: InputFile, _ given: BulkFormat?, _ account: ImportAccount, unless interruption: Interruption,
    into load: (BulkFormat) throws -> BulkImport
  ) throws -> Bool {
    guard var bytes = try file.read(chunk, unless: interruption) else { return false }
    var format = given ?? file.format(bytes)
    while format == nil {
      guard let more = try file.read(chunk, unless: interruption) else { return false }
      bytes += more
      format = more.isEmpty ? .csv : file.format(bytes)
    }
    let load = try load(format ?? .csv)
    defer { account.end(load.count) }
    do {
      while !bytes.isEmpty {
        guard try store(bytes, load, account, unless: interruption) else { return false }
        account.update(load.count)
        guard let more = try file.read(chunk, unless: interruption) else { return false }
        bytes = more
      }
      return try store(nil, load, account, unless: interruption)
    } catch let error as BulkError {
      throw failure(error, file.name)
    }
  }

  /// Waits ten minutes at most for another process's lock of the registry.
  /// - Parameter bytes: nil for the end of the file.
  /// - Returns: false if a signal came first.
  private static func store(
    _ bytes: [UInt8]?, _ load: BulkImport, _ account: ImportAccount, unless interruption: Interruption
  ) throws(BulkError) -> Bool {
    let begun = ContinuousClock.now
    var (bytes, hasWaited) = (bytes, false)
    while true {
      do throws(BulkError) {
        if let bytes { try load.feed(bytes) } else { try load.finish() }
        return true
      } catch .store(.unavailable(.locked, _)) where begun.duration(to: .now) < .seconds(600) {
        guard !interruption.hasCome else { return false }
        if !hasWaited { account.say("the registry is locked by another process; waiting") }
        hasWaited = true
        if bytes != nil { bytes = [] }
      }
    }
  }

  private static let stays = "stored rows are kept; you can import the files again"

  private static func failure(_ error: BulkError, _ file: String) -> CommandFailure {
    switch error {
    case .header: CommandFailure(.badInput, "\(file), line 1: \(error)")
    case .store(let cause): CommandFailure(ExitStatus(of: cause), "\(cause); \(stays)")
    }
  }

  private static func report(_ account: ImportAccount, _ seconds: Double, isDryRun: Bool, _ options: Options) {
    let count = account.total
    let rate = seconds > 0 ? Double(count.rows) / seconds : 0
    let refused = count.refused > 0 ? ", \(count.refused) refused" : ""
    options.print(
      [
        "rows": count.rows, "stored": count.stored, "refused": count.refused, "seconds": seconds, "rows_per_second": Int(rate),
      ],
      notice: "\(count.stored) of \(count.rows) rows \(isDryRun ? "would be " : "")stored\(refused), "
        + "in \(String(format: "%.1f", seconds)) s, \(Int(rate)) rows/s")
  }
}
