import Foundation
import HTTP2
import Wire

/// The server side of one HTTP/1.1 connection (RFC 9112). It answers one request after the other. Bodies need a `Content-Length`.
final class HTTP1Connection: Machine, SimulatedConnection {
  weak var transport: (any Transport)?
  private weak var handler: WebPushConnection?
  private var input: [UInt8] = []
  private var output: [UInt8] = []
  /// Requests so far. The last one's number is its stream.
  private var requests: Int32 = 0
  private var isAnswering = false
  private var isTaking = false
  /// True if the client or a scripted fault ends the connection with this answer.
  private var isLast = false
  private(set) var isFinished = false

  private static let (longestHead, longestBody) = (16 * 1024, 64 * 1024)

  init(_ handler: WebPushConnection) { self.handler = handler }

  // MARK: SimulatedConnection

  func respond(_ stream: Int32, status: Int, headers: [HeaderField], body: [UInt8]) {
    guard isAnswering, stream == requests, !isFinished else { return }
    isAnswering = false
    append("HTTP/1.1 \(status) \(StatusPhrase.of(status))\r\n")
    for header in headers { output += header.name + Array(": ".utf8) + header.value + Self.lineEnd }
    append("content-length: \(body.count)\r\n\(isLast ? "connection: close\r\n" : "")\r\n")
    output += body
    isFinished = isLast
    transport?.outputReady()
    takeRequests()
  }

  func reset(_ stream: Int32, _ code: ErrorCode) { abort() }

  /// Ends the connection with the answer, or at once if there will be none.
  func goAway(lastStreamID: Int32, code: ErrorCode, debugData: [UInt8]) {
    if lastStreamID < requests { abort() } else { isLast = true }
  }

  /// A connection has one stream.
  func setMaxConcurrentStreams(_ limit: Int) {}

  func abort() { transport?.close() }

  // MARK: Machine

  func transportOpened(at now: MonotonicTime) {}

  func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    guard !isFinished else { return }
    bytes.append(0..<bytes.byteCount, to: &input)
    if input.count > 2 * (Self.longestHead + Self.longestBody) {
      refuse(413, "too much is sent before an answer")
    } else {
      takeRequests()
    }
  }

  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    buffer.append(output)
    output.removeAll(keepingCapacity: true)
  }

  var deadline: MonotonicTime { .distantFuture }
  func deadlineReached(at now: MonotonicTime) {}

  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) { handler?.connectionEnded() }

  // MARK: Requests

  private func takeRequests() {
    // An answer calls this again.
    guard !isTaking else { return }
    isTaking = true
    defer { isTaking = false }
    while !isAnswering, !isFinished, let request = nextRequest() {
      isAnswering = true
      handler?.answer(request, on: self)
    }
  }

  /// Takes a whole request from the input; nil if it has none yet.
  private func nextRequest() -> ServerRequest? {
    guard let end = input.firstRange(of: Self.lineEnd + Self.lineEnd) else {
      return input.count > Self.longestHead ? refuse(431, "the head is too long") : nil
    }
    guard let headers = Self.headers(input[..<end.lowerBound]) else { return refuse(400, "the head is malformed") }
    var request = ServerRequest(stream: requests + 1, headers: headers)
    guard request.header("transfer-encoding") == nil else { return refuse(411, "the body has no Content-Length") }
    guard let length = Int(String(decoding: request.header("content-length") ?? [0x30], as: UTF8.self)),
      0...Self.longestBody ~= length
    else { return refuse(413, "Content-Length is no number that is accepted") }
    guard input.count - end.upperBound >= length else { return nil }
    request.body = Array(input[end.upperBound..<end.upperBound + length])
    request.bodySize = length
    input.removeFirst(end.upperBound + length)
    requests += 1
    isLast = request.header("connection").map { String(decoding: $0, as: UTF8.self).lowercased() } == "close"
    return request
  }

  /// The fields in HTTP/2's form: lower-case names, and pseudo-headers for the request line.
  private static func headers(_ head: ArraySlice<UInt8>) -> [HeaderField]? {
    let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
    let line = lines[0].split(separator: " ", omittingEmptySubsequences: false)
    guard line.count == 3, line[2] == "HTTP/1.1" else { return nil }
    var headers = [HeaderField(":method", String(line[0])), HeaderField(":path", String(line[1]))]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else { return nil }
      let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
      headers.append(HeaderField(line[..<colon].lowercased(), value))
    }
    return headers
  }

  /// Answers what is no request, and ends the connection.
  /// - Returns: nil, in place of a request.
  @discardableResult
  private func refuse(_ status: Int, _ violation: String) -> ServerRequest? {
    handler?.noteViolation("HTTP/1.1: \(violation)")
    append("HTTP/1.1 \(status) \(StatusPhrase.of(status))\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    isFinished = true
    transport?.outputReady()
    return nil
  }

  private func append(_ text: String) { output += text.utf8 }

  private static let lineEnd = Array("\r\n".utf8)
}
