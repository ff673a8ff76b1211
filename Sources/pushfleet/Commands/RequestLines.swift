import Foundation
import PushCore
import Reactor

/// Reads a file line by line; or as a whole, if its first non-blank line is incomplete JSON and the file is one object.
final class LineReader {
  let name: String
  private let handle: FileHandle?
  /// True if no input is available at present and the file hasn't ended.
  private(set) var isWaiting = false
  private var buffer: [UInt8] = []
  private var start = 0
  private var number = 0
  private var hasBegun = false
  private var isEnded = false
  /// Bytes. Larger than any request, with room for indentation.
  private static let largestObject = 8 << 20

  /// - Parameter input: the content of standard input, if already read.
  init(_ file: String, input: [UInt8]? = nil) {
    name = file == "-" ? "standard input" : file
    if file == "-", let input {
      handle = nil
      buffer = input
    } else {
      handle = file == "-" ? .standardInput : FileHandle(forReadingAtPath: file)
    }
  }

  var input: InputDescriptor? { handle.map { InputDescriptor($0.fileDescriptor) } }

  /// nil at the end, and while input must be awaited.
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

  /// - Returns: false if no input is available at present.
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

  /// False if the line opens an object or array that it doesn't close.
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

  /// nil if the file consists of lines and only the first is broken: then the next line begins with its own object.
  private func wholeObject() -> (number: Int, bytes: [UInt8])? {
    let whole = Array(buffer[start...])
    let next = whole.split(separator: 0x0A, maxSplits: 2).dropFirst().first
    if next?.first == UInt8(ascii: "{"), (try? JSONDocument(whole)) == nil { return nil }
    number += 1
    start = buffer.count
    return (number, whole)
  }
}
