import Wire

/// The client's side of `CONNECT` (RFC 9110 §9.3.6): the request, and the proxy's answer in pieces of any size. Ends with the
/// answer's head: a body is never read.
struct ConnectTunnel {
  enum Verdict: Equatable, Sendable {
    /// More of the answer is needed.
    case incomplete
    /// The bytes that follow are the peer's.
    case open
    case refused(String)
  }

  /// Bytes, with interim answers.
  static let longestAnswer = 4096
  private static let longestReason = 100

  private let peer: Endpoint
  private let proxy: ProxyAddress
  private var count = 0
  private var line: [UInt8] = []
  private var status: (code: Int, text: String)?
  /// The values of `Proxy-Authenticate`.
  private var challenges: [String] = []

  init(to peer: Endpoint, through proxy: ProxyAddress) {
    self.peer = peer
    self.proxy = proxy
  }

  var request: [UInt8] {
    var request = Array("CONNECT \(peer) HTTP/1.1\r\nHost: \(peer)\r\nUser-Agent: pushfleet\r\n".utf8)
    if let authorization = proxy.authorization { request += Array("Proxy-Authorization: ".utf8) + authorization + [13, 10] }
    return request + [13, 10]
  }

  mutating func receive(_ bytes: [UInt8]) -> Verdict {
    for (index, byte) in bytes.enumerated() {
      let verdict = receive(byte)
      if verdict == .open, index + 1 < bytes.count {
        return .refused("the proxy \(proxy) sends bytes of its own into the tunnel")
      }
      if verdict != .incomplete { return verdict }
    }
    return .incomplete
  }

  /// The status of the latest answer; 0 for none.
  var answer: Int { status?.code ?? 0 }

  /// Why there is no tunnel if no more of the answer comes.
  func refusal(_ reason: String) -> String {
    status.flatMap { isFinal($0.code) ? refusal($0) : nil } ?? "the proxy \(proxy) \(reason)"
  }

  private mutating func receive(_ byte: UInt8) -> Verdict {
    count += 1
    guard count <= Self.longestAnswer else {
      return .refused(refusal("answers with a head of more than \(Self.longestAnswer) bytes"))
    }
    guard byte == UInt8(ascii: "\n") else {
      line.append(byte)
      return .incomplete
    }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    defer { line.removeAll(keepingCapacity: true) }
    return takeLine()
  }

  private mutating func takeLine() -> Verdict {
    guard let status else {
      self.status = Self.status(line)
      return self.status == nil ? .refused("the proxy \(proxy) does not answer as an HTTP proxy") : .incomplete
    }
    guard line.isEmpty else {
      takeChallenge()
      return .incomplete
    }
    if isOpen(status.code) { return .open }
    if isFinal(status.code) { return .refused(refusal(status)) }
    self.status = nil
    return .incomplete
  }

  private func isOpen(_ code: Int) -> Bool { (200..<300).contains(code) }
  private func isFinal(_ code: Int) -> Bool { code >= 300 }

  /// The code of a status line, and the code with the reason as printable text.
  private static func status(_ line: [UInt8]) -> (code: Int, text: String)? {
    guard line.starts(with: "HTTP/1.".utf8), line.count >= 12, line[8] == UInt8(ascii: " ") else { return nil }
    let text = String(decoding: line[9...].prefix(longestReason).map { (0x20...0x7e).contains($0) ? $0 : 0x3f }, as: UTF8.self)
    guard let code = Int(text.prefix { $0 != " " }), (100...999).contains(code) else { return nil }
    return (code, text)
  }

  private mutating func takeChallenge() {
    let parts = String(decoding: line, as: UTF8.self).split(separator: ":", maxSplits: 1)
    if parts.count == 2, parts[0].lowercased() == "proxy-authenticate" { challenges.append(parts[1].lowercased()) }
  }

  private func refusal(_ status: (code: Int, text: String)) -> String {
    let advice =
      switch status.code {
      // Tinyproxy refuses a wrong password with 401.
      case 401, 407: adviceForLogin
      case 403: "; it forbids \(peer)"
      case 400, 404, 405, 501: "; it may not support CONNECT"
      // A server that can't be reached is 500 for Tinyproxy and 503 for Squid.
      case 500, 502...504: "; it gets no connection to \(peer)"
      default: ""
      }
    return "the proxy \(proxy) refuses the tunnel: \(status.text)\(advice)"
  }

  private var adviceForLogin: String {
    if !challenges.isEmpty, !challenges.contains(where: { $0.contains("basic") }) {
      return "; it does not offer Basic authentication, the only one that pushfleet knows"
    }
    return proxy.authorization == nil ? "; `proxy` needs a user and a password" : "; check the user and password in `proxy`"
  }
}
