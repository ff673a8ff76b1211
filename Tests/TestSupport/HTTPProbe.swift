import Foundation
import Glibc

/// A plain HTTP/1.1 client over loopback, with one connection per request.
public struct HTTPProbe {
  public struct Answer {
    public var status: Int
    public var headers: [String: String]
    public var body: String
  }

  let port: UInt16

  public init(port: UInt16) { self.port = port }

  /// Nil if nobody listens, or no answer comes in time.
  public func ask(
    _ path: String, method: String = "GET", headers: [String: String] = [:], body: String? = nil, seconds: Int = 10
  ) -> Answer? {
    let fields = headers.map { "\($0): \($1)\r\n" }.joined()
    let length = body.map { "Content-Length: \($0.utf8.count)\r\n" } ?? ""
    let answer = say(
      "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(fields)\(length)\r\n\(body ?? "")",
      seconds: seconds)
    if let answer, Self.pagesOfFigures.contains(path) { SpokenSecrets.look(in: answer.body, of: [path]) }
    return answer
  }

  /// Pages for operators.
  private static let pagesOfFigures = ["/", "/metrics", "/status.json", "/history.json", "/livez", "/readyz"]

  /// Sends any text and returns the first answer; nil if none comes.
  public func say(_ text: String, seconds: Int = 10) -> Answer? {
    if case .answer(let answer) = outcome(of: text, seconds: seconds) { answer } else { nil }
  }

  public enum Outcome {
    case answer(Answer)
    /// The server closed the connection without an answer, or accepts none.
    case closed
    case silence
  }

  public func outcome(of text: String, seconds: Int = 10) -> Outcome {
    guard let raw = connection(seconds: seconds) else { return .closed }
    defer { close(raw) }
    let request = Array(text.utf8)
    guard send(raw, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return .closed }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(raw, &chunk, chunk.count, 0)
      guard count >= 0 else { return errno == EAGAIN ? .silence : .closed }
      if count == 0 { break }
      bytes += chunk[..<count]
    }
    return Self.answer(bytes).map { .answer($0) } ?? .closed
  }

  private static func answer(_ bytes: [UInt8]) -> Answer? {
    let parts = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n\r\n")
    let lines = parts[0].components(separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.count > 1, let status = Int(words[1]) else { return nil }
    let fields = lines.dropFirst().compactMap { line -> (String, String)? in
      let pair = line.split(separator: ":", maxSplits: 1)
      return pair.count == 2 ? (pair[0].lowercased(), pair[1].trimmingCharacters(in: .whitespaces)) : nil
    }
    return Answer(
      status: status, headers: Dictionary(fields) { $1 }, body: parts.dropFirst().joined(separator: "\r\n\r\n"))
  }

  /// An open connection, to be closed by the caller; nil if nobody listens.
  public func connection(seconds: Int = 10) -> Int32? {
    let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    if Loopback.call(connect, raw, port: port) == 0 { return raw }
    close(raw)
    return nil
  }
}
