import AMQP
import Wire

/// One request over HTTP/1 on a connection of its own (RFC 9112), which its answer ends.
package final class HTTPCall: Machine {
  package struct Request {
    package var method: String
    /// With the port.
    package var host: String
    package var path: String
    /// Names and values, without line breaks.
    package var headers: [(name: String, value: String)] = []
    package var body: [UInt8] = []
    /// Seconds, from the connection to the whole answer.
    package var timeout: Double
    /// Bytes of an answer, its head with it; what follows is not read.
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
    /// - Parameter body: nil where it is longer than it may be, or cut short.
    case answered(status: Int, body: [UInt8]?)
    case failed(String)
  }

  package weak var transport: (any Transport)?
  private var output: [UInt8]
  private var written = 0
  private var answer: [UInt8] = []
  private let longestAnswer: Int
  private var isTooLong = false
  private let timeout: Double
  package private(set) var deadline = MonotonicTime.distantFuture
  package private(set) var isFinished = false
  private var completion: ((Answer) -> Void)?

  /// - Parameter completion: called once, from the machine's thread.
  package init(_ request: Request, _ completion: @escaping (Answer) -> Void) {
    timeout = request.timeout
    longestAnswer = request.longestAnswer
    self.completion = completion
    // An answer to 1.0 comes in one piece, which ends with the connection; it has no other way to say that a body follows than its length.
    var head =
      "\(request.method) \(request.path) HTTP/1.\(request.body.isEmpty ? 0 : 1)\r\nHost: \(request.host)\r\nUser-Agent: pushfleet\r\nConnection: close\r\n"
    if !request.body.isEmpty { head += "Content-Length: \(request.body.count)\r\n" }
    for (name, value) in request.headers { head += "\(name): \(value)\r\n" }
    output = Array((head + "\r\n").utf8) + request.body
  }

  package func transportOpened(at now: MonotonicTime) { deadline = now.advanced(bySeconds: timeout) }

  package func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    let room = max(longestAnswer - answer.count, 0)
    bytes.append(0..<min(bytes.byteCount, room), to: &answer)
    guard bytes.byteCount > room else { return }
    isTooLong = true
    end()
  }

  package func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    if let status { complete(.answered(status: status, body: body)) } else { complete(.failed("\(reason)")) }
  }

  package func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    let count = min(output.count - written, 64 * 1024)
    guard count > 0 else { return }
    buffer.append(output[written..<written + count])
    written += count
  }

  package func deadlineReached(at now: MonotonicTime) {
    complete(status.map { .answered(status: $0, body: nil) } ?? .failed("no answer in time"))
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

  /// Of the status line; nil before there is one.
  private var status: Int? {
    guard answer.starts(with: "HTTP/1.".utf8), answer.count >= 12, answer[8] == UInt8(ascii: " ") else { return nil }
    let digits = answer[9..<12]
    guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }

  private var body: [UInt8]? {
    guard !isTooLong, let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    let body = answer[end.upperBound...]
    let announced = String(decoding: answer[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n").compactMap { line in
      let parts = line.split(separator: ":", maxSplits: 1)
      return parts.count == 2 && parts[0].lowercased() == "content-length"
        ? Int(parts[1].drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }) : nil
    }
    return announced.first.map { $0 == body.count } == false ? nil : Array(body)
  }
}
