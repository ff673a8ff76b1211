import PushCore
import Reactor

/// Reads a file line by line; or as a whole, if its first non-blank line is incomplete JSON and the file is one object.
final class LineReader {
  let name: String
  /// nil if the content is given, or the file can't be opened.
  private var file: InputFile?
  /// True if no input is available at present and the file hasn't ended.
  private(set) var isWaiting = false
  /// Why the file is not read to its end.
  private(set) var problem: CommandFailure?
  private var buffer: [UInt8] = []
  private var start = 0
  /// No newline is between `start` and this place.
  private var searched = 0
  private var number = 0
  private var hasBegun = false
  private var isEnded = false
  /// Bytes. Larger than any request, with room for indentation.
  private static let largestObject = 8 << 20

  /// - Parameter input: the content of standard input, if already read.
  init(_ path: String, input: [UInt8]? = nil) {
    name = path == "-" ? "standard input" : path
    if path == "-", let input {
      (buffer, isEnded) = (input, true)
      return
    }
    do throws(CommandFailure) { file = try InputFile(path) } catch { (problem, isEnded) = (error, true) }
  }

  var input: InputDescriptor? { file?.descriptor }

  /// nil at the end, and while input must be awaited.
  func next() -> (number: Int, bytes: [UInt8])? {
    isWaiting = false
    while true {
      if let end = buffer[searched...].firstIndex(of: 0x0A) {
        let line = Array(buffer[start..<end])
        if !hasBegun, !line.allSatisfy(Self.isSpace) {
          if !Self.isComplete(line) {
            while !isEnded, buffer.count < Self.largestObject { guard read() else { return nil } }
            hasBegun = true
            if let whole = wholeObject() { return problem == nil ? whole : nil }
            // Reading has moved the line within the buffer.
            continue
          }
          hasBegun = true
        }
        start = end + 1
        searched = start
        number += 1
        return (number, line)
      }
      searched = buffer.count
      if isEnded {
        guard start < buffer.count, problem == nil else { return nil }
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
    buffer.removeSubrange(..<start)
    (start, searched) = (0, searched - start)
    guard buffer.count <= Self.largestObject else {
      let words = "\(name), line \(number + 1): longer than \(Self.largestObject >> 20) MiB; the rest is not read"
      (problem, isEnded) = (CommandFailure(.badInput, words), true)
      return true
    }
    do throws(SystemError) {
      switch try file?.descriptor.read(atMost: 1 << 16) {
      case .bytes(let chunk): buffer += chunk
      case .notYet: isWaiting = true
      case .end, nil: isEnded = true
      }
    } catch { (problem, isEnded) = (file?.unreadable(error), true) }
    return !isWaiting
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
    (start, searched) = (buffer.count, buffer.count)
    return (number, whole)
  }
}
