import Foundation

/// Lines that are printed later. They wait in a file without a name, which goes with the process.
final class Spool {
  private let file: FileHandle
  /// Why a line could not be kept.
  private var failure: CommandFailure?
  private static let folder = FileManager.default.temporaryDirectory
  private static let piece = 1 << 20

  init() throws(CommandFailure) {
    let place = Self.folder.appending(path: "pushfleet-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: place) }
    do {
      try Data().write(to: place, options: .withoutOverwriting)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: place.path)
      file = try FileHandle(forUpdating: place)
    } catch { throw Self.failure(error) }
  }

  func append(_ line: [UInt8]) {
    guard failure == nil else { return }
    do { try file.write(contentsOf: Data(line + [UInt8(ascii: "\n")])) } catch { failure = Self.failure(error) }
  }

  /// - Throws: where not all of them could be kept; then none is printed.
  func print() throws(CommandFailure) {
    if let failure { throw failure }
    do {
      try file.seek(toOffset: 0)
      while let piece = try file.read(upToCount: Self.piece), !piece.isEmpty { Terminal.write(Array(piece)) }
    } catch { throw Self.failure(error) }
  }

  private static func failure(_ error: any Error) -> CommandFailure {
    let reason = ((error as? CocoaError)?.underlying as? POSIXError).map { "\($0.code)" } ?? error.localizedDescription
    return CommandFailure(.unavailable, "what is to be shown can't be kept in \(folder.path) until then: \(reason)")
  }
}
