import Foundation
import PushCore
import Reactor

/// Lines of a file, or the whole file where its first line that isn't blank is no complete JSON document and it holds one object.
final class LineReader {
  let name: String
  private let handle: FileHandle?
  /// Nothing more is there at present, and it has not ended.
  private(set) var isWaiting = false
  private var buffer: [UInt8] = []
  private var start = 0
  private var number = 0
  private var hasBegun = false
  private var isEnded = false
  /// A file of one object may not be larger than a request can be, with room for indentation.
  private static let largestObject = 8 << 20

  /// - Parameter input: what standard input held, where that has been read.
  init(_ file: String, input: [UInt8]? = nil) {
    name = file == "-" ? "standard input" : file
    if file == "-", let input {
      handle = nil
      buffer = input
    } else {
      handle = file == "-" ? .standardInput : FileHandle(forReadingAtPath: file)
    }
  }

  /// What has to be waited for.
  var input: InputDescriptor? { handle.map { InputDescriptor($0.fileDescriptor) } }

  /// nil at the end, and where what comes next has to be waited for.
  func next() -> (number: Int, bytes: [UInt8])? {
    isWaiting = false
    while true {
      if let end = buffer[start...].firstIndex(of: 0x0A) {
        let line = Array(buffer[start..<end])
        if !hasBegun, !line.allSatisfy(Self.isSpace) {
          if !Self.isComplete(line) {
            while !isEnded, buffer.count < Self.largestObject { guard read() else { return nil } }
            hasBegun = true
            if let whole = wholeObject() { return whole }
          }
          hasBegun = true
        }
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
      guard read() else { return nil }
    }
  }

  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }

  /// - Returns: false where nothing is there at present.
  private func read() -> Bool {
    if start > 0 {
      buffer.removeSubrange(..<start)
      start = 0
    }
    switch try? input?.read(atMost: 1 << 16) {
    case .bytes(let chunk): buffer.append(contentsOf: chunk)
    case .notYet:
      isWaiting = true
      return false
    case .end, nil: isEnded = true
    }
    return true
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
    let whole = Array(buffer[start...])
    let next = whole.split(separator: 0x0A, maxSplits: 2).dropFirst().first
    if next?.first == UInt8(ascii: "{"), (try? JSONDocument(whole)) == nil { return nil }
    number += 1
    start = buffer.count
    return (number, whole)
  }
}

/// Standard input, for what must be read twice.
enum StandardInput {
  private static let most = 256 << 20

  /// - Returns: nil where an interruption came before its end.
  static func read(unless interruption: Interruption) throws(CommandFailure) -> [UInt8]? {
    let input = InputDescriptor(FileHandle.standardInput.fileDescriptor)
    let bytes: [UInt8]?
    do throws(SystemError) { bytes = try interruption.readAll(input, atMost: most + 1) } catch {
      throw CommandFailure(.badInput, "standard input cannot be read")
    }
    guard let bytes, bytes.count > most else { return bytes }
    throw CommandFailure(.badInput, "standard input has more than \(most >> 20) MiB, too much to check first: name a file")
  }
}
