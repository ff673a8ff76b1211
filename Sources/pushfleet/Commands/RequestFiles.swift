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

  init(_ files: [String]) throws(CommandFailure) {
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
        lines = LineReader(file)
        continue
      }
      guard let line = reader.next() else {
        lines = nil
        continue
      }
      bytesRead += line.bytes.count + 1
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

/// Lines of a file, or the whole file where its first line is no complete JSON document and it holds one object.
final class LineReader {
  let name: String
  private let handle: FileHandle?
  private var buffer: [UInt8] = []
  private var start = 0
  private var number = 0
  private var isEnded = false
  /// A file of one object may not be larger than a request can be, with room for indentation.
  private static let largestObject = 8 << 20

  init(_ file: String) {
    name = file == "-" ? "standard input" : file
    handle = file == "-" ? .standardInput : FileHandle(forReadingAtPath: file)
  }

  func next() -> (number: Int, bytes: [UInt8])? {
    while true {
      if let end = buffer[start...].firstIndex(of: 0x0A) {
        let line = Array(buffer[start..<end])
        if number == 0, !Self.isComplete(line), let whole = wholeObject() { return whole }
        start = end + 1
        number += 1
        return (number, line)
      }
      if isEnded {
        guard start < buffer.count else { return nil }
        defer { start = buffer.count }
        number += 1
        return (number, Array(buffer[start...]))
      }
      read()
    }
  }

  private func read() {
    if start > 0 {
      buffer.removeSubrange(..<start)
      start = 0
    }
    guard let chunk = try? handle?.read(upToCount: 1 << 16), !chunk.isEmpty else {
      isEnded = true
      return
    }
    buffer.append(contentsOf: chunk)
  }

  /// The first line opens an object that it doesn't close.
  private static func isComplete(_ line: [UInt8]) -> Bool {
    var depth = 0
    var isString = false
    var isEscaped = false
    for byte in line {
      if isEscaped {
        isEscaped = false
      } else if isString {
        if byte == UInt8(ascii: "\\") { isEscaped = true } else if byte == UInt8(ascii: "\"") { isString = false }
      } else {
        switch byte {
        case UInt8(ascii: "\""): isString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        default: break
        }
      }
    }
    return depth <= 0
  }

  /// nil where the file is rather one of lines, the first of which is broken: the next one opens an object of its own.
  private func wholeObject() -> (number: Int, bytes: [UInt8])? {
    while !isEnded, buffer.count < Self.largestObject { read() }
    let whole = Array(buffer[start...])
    let next = whole.split(separator: 0x0A, maxSplits: 2).dropFirst().first
    if next?.first == UInt8(ascii: "{"), (try? JSONDocument(whole)) == nil { return nil }
    number = 1
    start = buffer.count
    return (1, whole)
  }
}
