import Foundation
import PushCore
import Worker

/// The requests of files and standard input, one at a time: a file of one JSON object, or of one per line.
///
/// A line that is no JSON object is reported with its place and skipped.
final class RequestFiles {
  struct Request {
    /// A fresh id, so that a request published twice after a lost connection is known as one.
    var id: [UInt8]
    var body: [UInt8]
    /// The file and line it comes from, for error messages.
    var place: String
  }

  private var files: ArraySlice<String>
  private var lines: LineReader?
  private(set) var bytesRead = 0
  let totalBytes: Int
  private(set) var refused = 0
  private(set) var isAtEnd = false
  /// Where the next line stands; nil before the first.
  private(set) var place: String?
  /// What stands in for standard input, which can be read only once.
  private let input: [UInt8]?

  init(_ files: [String], input: [UInt8]? = nil) throws(CommandFailure) {
    self.input = input
    var total = 0
    for file in files where file != "-" {
      let attributes = try? FileManager.default.attributesOfItem(atPath: file)
      guard let size = attributes?[.size] as? Int, attributes?[.type] as? FileAttributeType != .typeDirectory,
        FileManager.default.isReadableFile(atPath: file)
      else {
        throw CommandFailure(.badInput, "\(Shown.path(file)) cannot be read")
      }
      total += size
    }
    totalBytes = total
    self.files = files[...]
  }

  func next() -> Request? {
    while !isAtEnd {
      guard let reader = lines else {
        guard let file = files.popFirst() else {
          isAtEnd = true
          return nil
        }
        lines = LineReader(file, input: input)
        continue
      }
      guard let line = reader.next() else {
        lines = nil
        continue
      }
      bytesRead += line.bytes.count + 1
      place = "\(reader.name), line \(line.number + 1)"
      if line.bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0A }) { continue }
      if let problem = Self.problem(in: line.bytes) {
        refused += 1
        Terminal.say("pushfleet: \(reader.name), line \(line.number): \(problem)")
        continue
      }
      return Request(id: UUIDText.random(), body: line.bytes, place: "\(reader.name), line \(line.number)")
    }
    return nil
  }

  private static func problem(in bytes: [UInt8]) -> String? {
    do {
      let document = try JSONDocument(bytes)
      return document.kind(document.root) == .object ? nil : "not a JSON object"
    } catch {
      return "\(error)"
    }
  }
}
