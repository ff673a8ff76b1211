import CMicroHTTPD
import Glibc

/// A request's first line in the library's buffer. A zero follows each part.
struct RequestLine {
  let method, target, version: UnsafePointer<CChar>

  var isChunkable: Bool { strcmp(version, MHD_HTTP_VERSION_1_0) != 0 }
  var isKnown: Bool { !isChunkable || strcmp(version, MHD_HTTP_VERSION_1_1) == 0 }

  /// The start of the next line. Nil if the parts are not separated by one space, or the line doesn't end with CR LF (RFC 9112,
  /// section 3).
  /// - Parameter text: the whole target; the library has cut off the query.
  func end(_ text: [UInt8]) -> UnsafePointer<CChar>? {
    guard target == method + strlen(method) + 1, version == target + text.count + 1, text.allSatisfy({ $0 > 0x20 }) else {
      return nil
    }
    let end = version + strlen(version)
    return end[0] == 0 && end[1] == 0 ? end + 2 : nil
  }
}

/// Detects headers that can be read in more than one way. If a proxy and this server saw different ends of a request, the next
/// request on the connection could belong to another client (RFC 9112, sections 2.2, 3.2, 5.1, 6.1, 6.3 and 11.2).
struct RequestHeaders {
  private var (lengths, encodings, hosts, credentials) = (0, 0, 0, 0)
  private var isOdd = false
  /// The expected start of the next line: after CR LF, without other line ends and NUL before.
  private var next: UnsafePointer<CChar>?

  /// - Returns: true if the headers are ambiguous.
  static func areAmbiguous(_ connection: OpaquePointer, _ line: RequestLine, target: [UInt8]) -> Bool {
    var headers = RequestHeaders()
    if knowsLines {
      guard let end = line.end(target) else { return true }
      headers.next = end
    }
    withUnsafeMutablePointer(to: &headers) { headers in
      pushfleet_mhd_each_header(connection, look, headers)
    }
    // The end of the last line, and the empty line after it.
    if knowsLines, let end = headers.next, end[-1] != 0 || end[0] != 0 || end[1] != 0 { return true }
    return headers.isOdd || headers.lengths + headers.encodings > 1 || headers.hosts > 1 || headers.credentials > 1
      || headers.encodings > 0 && !line.isChunkable
  }

  /// This version of the library accepts lone line ends, folded lines and NUL. It leaves the lines in place and replaces their
  /// ends with zeros. So a line that doesn't start two bytes after the previous text reveals one of these. Later versions
  /// refuse them.
  private static let knowsLines = MHD_VERSION <= 0x0009_7500

  fileprivate mutating func add(
    _ name: UnsafePointer<CChar>, _ nameCount: Int, _ value: UnsafePointer<CChar>?, _ valueCount: Int
  ) {
    let bytes = UnsafeRawBufferPointer(start: name, count: nameCount)
    let text = UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueCount)
    if bytes.isEmpty || !bytes.allSatisfy(Self.isOfName) || !text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) {
      isOdd = true
    }
    if Self.knowsLines {
      if let next, next != name { isOdd = true }
      next = value.map { $0 + valueCount + 2 }
    }
    switch nameCount {
    case 14 where strcasecmp(name, "content-length") == 0:
      lengths += 1
      let rest = text.drop { $0 >= 0x30 && $0 <= 0x39 }
      if rest.count == text.count || !rest.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { isOdd = true }
    case 17 where strcasecmp(name, "transfer-encoding") == 0:
      encodings += 1
      if value.map({ strcasecmp($0, "chunked") != 0 }) ?? true { isOdd = true }
    case 4 where strcasecmp(name, "host") == 0: hosts += 1
    case 13 where strcasecmp(name, "authorization") == 0: credentials += 1
    default: break
    }
  }

  /// A character of a token (RFC 9110, section 5.6.2).
  private static func isOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    // !#$%&'*+-.^_`|~
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
    default: false
    }
  }
}

private func look(
  _ context: UnsafeMutableRawPointer?, _ kind: MHD_ValueKind, _ name: UnsafePointer<CChar>?, _ nameCount: Int,
  _ value: UnsafePointer<CChar>?, _ valueCount: Int
) -> MHD_Result {
  guard let headers = context?.assumingMemoryBound(to: RequestHeaders.self), let name else { return pushfleet_mhd_go_on() }
  headers.pointee.add(name, nameCount, value, valueCount)
  return pushfleet_mhd_go_on()
}
