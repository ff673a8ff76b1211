import Wire

/// Reads the answer to one HTTP/1.1 request (RFC 9112), in any division of its bytes. Its memory is bounded by the limits.
package struct HTTP1Answer {
  private enum Part {
    case status, header
    /// A body of known length, and one that the connection's end ends.
    case body, endless
    case chunkSize, chunk, chunkEnd, trailer
    case end
  }

  /// Bytes beyond the kept ones that are read to save the connection.
  private static let mostSkipped = 64 * 1024

  private let configuration: ClientConfiguration
  private var part = Part.status
  private var line: [UInt8] = []
  /// Bytes that lines may still have, in a head or around a chunk.
  private var room: Int
  /// Bytes left of the body or chunk.
  private var left = Int.max
  private var length: Int?
  private var isTransferCoded = false
  private var isChunked = false
  /// True after the head. The status is final then.
  package private(set) var isHeaded = false
  /// Bytes of the body so far, kept or not.
  package private(set) var bodySize = 0
  /// True if the connection must not be used again.
  package private(set) var endsConnection = false
  /// Why the bytes are no answer.
  package private(set) var fault: String?

  package init(_ configuration: ClientConfiguration) {
    self.configuration = configuration
    room = configuration.maxHeaderListSize
  }

  package var isComplete: Bool { part == .end }

  /// True if the connection's end is the end of the body.
  package var isEndless: Bool { part == .endless }

  /// Returns the number of bytes that belong to the answer.
  package mutating func read(_ bytes: RawSpan, into response: inout Response) -> Int {
    var offset = 0
    while offset < bytes.byteCount, part != .end, fault == nil {
      switch part {
      case .body, .chunk, .endless: offset += takeBody(bytes, from: offset, into: &response)
      default:
        take(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self), into: &response)
        offset += 1
      }
    }
    return offset
  }

  private mutating func takeBody(_ bytes: RawSpan, from offset: Int, into response: inout Response) -> Int {
    let count = min(bytes.byteCount - offset, left)
    let kept = min(count, max(0, configuration.maxResponseBody - response.body.count))
    if kept > 0 { bytes.append(offset..<offset + kept, to: &response.body) }
    bodySize += count
    left -= count
    if bodySize > configuration.maxResponseBody + Self.mostSkipped {
      endsConnection = true
      part = .end
    } else if left == 0 {
      part = part == .chunk ? .chunkEnd : .end
    }
    return count
  }

  private mutating func take(_ byte: UInt8, into response: inout Response) {
    guard room > 0 else { return refuse("the answer's head is longer than \(configuration.maxHeaderListSize) bytes") }
    room -= 1
    guard byte == UInt8(ascii: "\n") else { return line.append(byte) }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    switch part {
    case .status: readStatus(into: &response)
    case .header: if line.isEmpty { endHead(response) } else { readHeader(into: &response) }
    case .chunkSize: readChunkSize()
    case .chunkEnd: if line.isEmpty { part = .chunkSize } else { refuse("a chunk of the answer is longer than it says") }
    case .trailer: if line.isEmpty { part = .end }
    case .body, .endless, .chunk, .end: break
    }
    line.removeAll(keepingCapacity: true)
  }

  private mutating func refuse(_ reason: String) { fault = reason }

  // MARK: The head

  private mutating func readStatus(into response: inout Response) {
    guard line.count >= 12, line.starts(with: "HTTP/1.".utf8), 0x30...0x39 ~= line[7], line[8] == UInt8(ascii: " "),
      line.count == 12 || line[12] == UInt8(ascii: " "), response.begin(statusDigits: line.span.bytes.extracting(9..<12))
    else { return refuse("the answer doesn't begin with a status") }
    endsConnection = line[7] == UInt8(ascii: "0")
    (length, isTransferCoded, isChunked) = (nil, false, false)
    part = .header
  }

  private mutating func readHeader(into response: inout Response) {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0, !line[..<colon].contains(where: Self.isBlank)
    else { return refuse("a header of the answer has no name") }
    let name = Self.lowercased(line[..<colon])
    let value = Self.trimmed(line[(colon + 1)...])
    if name.elementsEqual("content-length".utf8) {
      readLength(value)
    } else if name.elementsEqual("transfer-encoding".utf8) {
      isTransferCoded = true
      isChunked = Self.words(value).last?.elementsEqual("chunked".utf8) == true
    } else if name.elementsEqual("connection".utf8) {
      if Self.words(value).contains(where: { $0.elementsEqual("close".utf8) }) { endsConnection = true }
    }
    guard configuration.keepsHeadersOfSuccess || response.status != 200 else { return }
    for (index, kept) in configuration.keptResponseHeaders.enumerated() where name.elementsEqual(kept.utf8) {
      response.keep(value.span.bytes, at: index)
    }
  }

  private mutating func readLength(_ digits: ArraySlice<UInt8>) {
    guard 1...18 ~= digits.count, digits.allSatisfy({ 0x30...0x39 ~= $0 })
    else { return refuse("the answer's length is no number") }
    let number = digits.reduce(0) { $0 * 10 + Int($1 & 0xf) }
    guard length == nil || length == number else { return refuse("the answer has two lengths") }
    length = number
  }

  /// Chooses how the body ends (RFC 9112 §6.3).
  private mutating func endHead(_ response: Response) {
    guard response.isFinal else {
      part = .status
      return
    }
    isHeaded = true
    if response.status == 204 || response.status == 304 {
      part = .end
    } else if isTransferCoded {
      // Both a coding and a length may be an attack on a server between.
      endsConnection = endsConnection || !isChunked || length != nil
      part = isChunked ? .chunkSize : .endless
    } else if let length {
      left = length
      part = length == 0 ? .end : .body
    } else {
      endsConnection = true
      part = .endless
    }
  }

  // MARK: Chunks

  /// Extensions are ignored (RFC 9112 §7.1.1).
  private mutating func readChunkSize() {
    let digits = line.prefix { $0.hexValue != nil }
    let rest = line.dropFirst(digits.count).first
    guard 1...15 ~= digits.count, rest == nil || rest == UInt8(ascii: ";") || rest.map(Self.isBlank) == true else {
      return refuse("a chunk of the answer has no size")
    }
    left = digits.reduce(0) { $0 << 4 | Int($1.hexValue ?? 0) }
    part = left == 0 ? .trailer : .chunk
    room = configuration.maxHeaderListSize
  }

  // MARK: Text

  private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard let first = text.firstIndex(where: { !isBlank($0) }), let last = text.lastIndex(where: { !isBlank($0) }) else {
      return []
    }
    return text[first...last]
  }

  private static func lowercased(_ text: ArraySlice<UInt8>) -> [UInt8] { text.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 } }

  /// The members of a comma-separated list, in lower case.
  private static func words(_ list: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    lowercased(list).split(separator: UInt8(ascii: ",")).map(trimmed)
  }
}
