import Foundation
import Reactor
import Settings

/// A file that a command reads, or standard input for `-`.
struct InputFile {
  let name: String
  private let handle: FileHandle
  var descriptor: InputDescriptor { InputDescriptor(handle.fileDescriptor) }

  init(_ path: String) throws(CommandFailure) {
    name = path == "-" ? "standard input" : path
    let reason = path == "-" ? "" : SafeText.reason(path)
    guard reason.isEmpty, let opened = path == "-" ? .standardInput : FileHandle(forReadingAtPath: path) else {
      throw CommandFailure(.badInput, "\(SafeText.path(path)) cannot be read\(reason)")
    }
    handle = opened
  }

  func unreadable(_ error: SystemError) -> CommandFailure {
    CommandFailure(.badInput, "\(name) cannot be read further: \(error.reason)")
  }

  /// - Returns: the available bytes, empty at the end; nil if a signal came first.
  func read(_ count: Int, unless interruption: Interruption) throws(CommandFailure) -> [UInt8]? {
    do throws(SystemError) {
      while !interruption.hasCome {
        switch try descriptor.read(atMost: count) {
        case .bytes(let bytes): return bytes
        case .end: return []
        case .notYet: try interruption.wait(for: descriptor)
        }
      }
    } catch { throw unreadable(error) }
    return nil
  }

  private static let piece = 1 << 20

  /// Reads to the end, up to `most` bytes.
  /// - Returns: nil if a signal came before the end.
  func readAll(atMost most: Int, unless interruption: Interruption) throws(CommandFailure) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < most {
      guard let chunk = try read(min(Self.piece, most - bytes.count), unless: interruption) else { return nil }
      if chunk.isEmpty { break }
      bytes += chunk
    }
    return bytes
  }

  private static let mostInput = 256 << 20

  /// The whole standard input.
  /// - Returns: nil if a signal came before the end.
  static func standardInput(unless interruption: Interruption) throws(CommandFailure) -> [UInt8]? {
    let bytes = try InputFile("-").readAll(atMost: mostInput + 1, unless: interruption)
    guard let bytes, bytes.count > mostInput else { return bytes }
    throw CommandFailure(.badInput, "standard input has more than \(mostInput >> 20) MiB, too much to be read at once")
  }
}

extension SafeText {
  /// Why a file can't be written, in the system's words.
  static func reason(_ error: any Error) -> String {
    let code = ((error as? CocoaError)?.underlying as? POSIXError)?.code.rawValue
    return (error as? SystemError ?? code.map { SystemError("write", code: $0) })?.reason ?? error.localizedDescription
  }

  /// Why a file can't be read, as the end of a sentence that names it.
  static func reason(_ path: String) -> String {
    guard let facts = try? FileManager.default.attributesOfItem(atPath: path) else { return ": there is no such file" }
    if facts[.type] as? FileAttributeType == .typeDirectory { return ": it is a folder" }
    return FileManager.default.isReadableFile(atPath: path) ? "" : ": permission denied"
  }
}
