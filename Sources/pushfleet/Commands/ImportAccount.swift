import DeviceRegistry
import Foundation
import PushCore
import Settings

/// The file of refused rows, each with the reason in front, to be corrected and imported again.
final class RejectsFile {
  private let path: String
  private let handle: FileHandle
  private var isEmpty = true

  /// - Parameter source: the imported file; writing rejects to the same file would destroy it, so that is refused.
  init(_ path: String, source: String) throws(CommandFailure) {
    if let number = Self.number(path), number == Self.number(source) {
      throw CommandFailure(.usage, "--rejects: \(SafeText.path(path)) is the file that is imported")
    }
    guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]),
      let opened = FileHandle(forWritingAtPath: path)
    else { throw CommandFailure(.badInput, "--rejects: \(SafeText.path(path)) cannot be written") }
    self.path = path
    handle = opened
  }

  /// Identifies a file by device and inode; nil if it doesn't exist.
  private static func number(_ path: String) -> [UInt64]? {
    let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    guard let facts = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
    return [FileAttributeKey.systemNumber, .systemFileNumber].compactMap { (facts[$0] as? NSNumber)?.uint64Value }
  }

  /// - Parameter header: the CSV header line; empty for NDJSON.
  func append(_ row: [UInt8], header: [UInt8], reason: String) {
    var bytes =
      header.isEmpty ? Self.object(row, reason) : Self.line(row, header, "\"\(reason.replacing("\"", with: "\"\""))\"")
    if isEmpty, !header.isEmpty { bytes = Self.line(header, header, BulkImport.reason) + bytes }
    isEmpty = false
    do { try handle.write(contentsOf: Data(bytes)) } catch {
      Terminal.notice("--rejects: \(SafeText.path(path)) cannot be written to")
    }
  }

  /// A CSV line with a new first field, which replaces the reason of an earlier import if the header has one.
  private static func line(_ row: [UInt8], _ header: [UInt8], _ field: String) -> [UInt8] {
    var isQuoted = false
    let end = row.firstIndex {
      if $0 == UInt8(ascii: "\"") { isQuoted.toggle() }
      return $0 == UInt8(ascii: ",") && !isQuoted
    }
    let isAgain = header.starts(with: "\(BulkImport.reason),".utf8)
    return Array("\(field),".utf8) + (isAgain ? end.map { row[($0 + 1)...] } ?? [] : row[...]) + [0x0A]
  }

  /// An NDJSON line with a new reason. A line that isn't a JSON object stays unchanged.
  private static func object(_ row: [UInt8], _ reason: String) -> [UInt8] {
    guard let json = try? JSONDocument(row), json.kind(json.root) == .object else { return row + [0x0A] }
    let members = json.members(of: json.root).filter { !json.isString($0.0, BulkImport.reason) }.map { name, value in
      let isText = json.kind(value) == .string
      return (json.text(name), isText ? json.string(value) as any JSONMember : JSONRaw(Array(row[json.source(value)])))
    }
    return ([BulkImport.reason: reason] + JSONObject(members)).line + [0x0A]
  }
}

extension InputFile {
  /// Detects the format by the file's extension, or by the first character: only NDJSON begins with a brace.
  /// - Returns: nil if more bytes are needed.
  func format(_ beginning: [UInt8]) -> BulkFormat? {
    if name.hasSuffix(".csv") { return .csv }
    if name.hasSuffix(".ndjson") || name.hasSuffix(".jsonl") { return .ndjson }
    let mark: Set<UInt8> = [0xEF, 0xBB, 0xBF, 0x20, 0x09, 0x0A, 0x0D]
    return beginning.first { !mark.contains($0) }.map { $0 == UInt8(ascii: "{") ? .ndjson : .csv }
  }
}

final class ImportAccount {
  private(set) var total = (rows: 0, stored: 0, refused: 0, bytes: 0)
  /// The file that is being imported.
  var file = ""
  private var bar: ProgressBar

  let rejects: RejectsFile?

  init(_ files: [String], rejects: RejectsFile?) {
    self.rejects = rejects
    bar = ProgressBar("importing", total: ProgressBar.total(of: files))
  }

  func update(_ count: BulkCount) { bar.update(total.bytes + count.bytes) }

  func end(_ count: BulkCount) {
    update(count)
    total.rows += count.rows
    total.stored += count.stored
    total.refused += count.refused
    total.bytes += count.bytes
  }

  func finish() { bar.clear() }
  func say(_ sentence: String) { bar.interrupt(sentence) }

  func refused(_ row: BulkRefusal) {
    let reason = "\(row.error.rawValue): \(row.reason.printable)"
    rejects?.append(row.row, header: row.header, reason: reason)
    bar.interrupt("\(file), line \(row.line): \(reason)")
  }
}
