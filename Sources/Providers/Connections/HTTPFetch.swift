import HTTP2
import PushCore
import Wire

/// One HTTP/1 request (RFC 9112) on its own connection, which the answer ends.
package final class HTTPFetch: Machine {
  package struct Request {
    package var method: String
    /// With the port.
    package var host: String
    package var path: String
    /// Names and values, without line breaks.
    package var headers: [(name: String, value: String)] = []
    package var body: [UInt8] = []
    /// The limit in seconds from the connection to the end of the answer.
    package var timeout: Double
    /// The limit of an answer's body in bytes.
    package var longestAnswer: Int

    package init(method: String, host: String, path: String, timeout: Double, longestAnswer: Int) {
      self.method = method
      self.host = host
      self.path = path
      self.timeout = timeout
      self.longestAnswer = longestAnswer
    }
  }

  package enum Answer: Equatable {
    /// - Parameter body: nil if it is too long or incomplete.
    case answered(status: Int, body: [UInt8]?)
    case failed(String)
  }

  package weak var transport: (any Transport)?
  private var output: [UInt8]
  private var written = 0
  private var answer: HTTP1Answer
  private var response = Response()
  private let longestAnswer: Int
  private let timeout: Double
  package private(set) var deadline = MonotonicTime.distantFuture
  package private(set) var isFinished = false
  private var completion: ((Answer) -> Void)?

  /// - Parameter completion: called once, on the machine's thread.
  package init(_ request: Request, _ completion: @escaping (Answer) -> Void) {
    timeout = request.timeout
    longestAnswer = request.longestAnswer
    self.completion = completion
    var configuration = ClientConfiguration()
    configuration.maxResponseBody = request.longestAnswer
    configuration.keptResponseHeaders = ["retry-after"]
    answer = HTTP1Answer(configuration)
    var head =
      "\(request.method) \(request.path) HTTP/1.1\r\nHost: \(request.host)\r\nUser-Agent: pushfleet\r\nConnection: close\r\n"
    if !request.body.isEmpty { head += "Content-Length: \(request.body.count)\r\n" }
    for (name, value) in request.headers { head += "\(name): \(value)\r\n" }
    output = Array((head + "\r\n").utf8) + request.body
  }

  package func transportOpened(at now: MonotonicTime) { deadline = now.advanced(bySeconds: timeout) }

  package func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    _ = answer.read(bytes, into: &response)
    if answer.isComplete || answer.fault != nil { end() }
  }

  package func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    let isWhole = (answer.isComplete || answer.isEndless) && answer.bodySize <= longestAnswer
    complete(
      hasStatus ? .answered(status: response.status, body: isWhole ? response.body : nil) : .failed(answer.fault ?? "\(reason)")
    )
  }

  package func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    let count = min(output.count - written, 64 * 1024)
    guard count > 0 else { return }
    buffer.append(output[written..<written + count])
    written += count
  }

  package func deadlineReached(at now: MonotonicTime) {
    complete(hasStatus ? .answered(status: response.status, body: nil) : .failed("no answer in time"))
    end()
  }

  private func end() {
    deadline = .distantFuture
    isFinished = true
    transport?.outputReady()
  }

  private func complete(_ answer: Answer) {
    deadline = .distantFuture
    let completion = completion
    self.completion = nil
    completion?(answer)
  }

  /// Percent-encodes a text as a segment of a path, or as a value of a query (RFC 3986 §2.3).
  package static func encoded(_ text: String) -> String {
    var out = ""
    for byte in text.utf8 {
      if Bytes.isAlphanumeric(byte) || "-._~".utf8.contains(byte) {
        out.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        out += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return out
  }

  /// The answer's `Retry-After` in seconds; nil without one, and for a date.
  package var retryAfter: Double? {
    response.header(0).flatMap { Int(String(decoding: $0, as: UTF8.self)) }.map { Double(max($0, 0)) }
  }

  /// A status counts once the head is complete.
  private var hasStatus: Bool { answer.isHeaded }
}
