import Foundation
import Settings

/// Buffers lines in an unlinked temporary file until they are printed.
final class TextBuffer {
  private let file: FileHandle
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

  /// - Throws: if a line could not be buffered; then nothing is printed.
  func print() throws(CommandFailure) {
    if let failure { throw failure }
    do {
      try file.seek(toOffset: 0)
      while let piece = try file.read(upToCount: Self.piece), !piece.isEmpty { Terminal.write(Array(piece)) }
    } catch { throw Self.failure(error) }
  }

  private static func failure(_ error: any Error) -> CommandFailure {
    CommandFailure(.unavailable, "the output can't be buffered in \(folder.path): \(SafeText.reason(error))")
  }
}
