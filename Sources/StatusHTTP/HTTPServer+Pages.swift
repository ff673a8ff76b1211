/// A server of short texts. It answers GET and HEAD only and ignores request bodies.
///
/// The limits are low: clients that open connections and send nothing delay a probe by at most the idle time.
extension HTTPServer {
  /// Gets a path and answers it now or later.
  public typealias Pages = @Sendable (String, _ isFromThisMachine: Bool, HTTPReply) -> Void

  /// - Parameter host: an address, or a name. The first address of a name is used.
  public convenience init(host: String, port: UInt16, pages: @escaping Pages) throws(HTTPServerError) {
    let limits = HTTPServerLimits(connections: 128, idle: 2, body: 4_096)
    try self.init(host: host, port: port, limits: limits, headers: ["host"]) { request, reply in
      guard !Self.isMisled(String(decoding: request.headers["host"] ?? [], as: UTF8.self), to: host) else {
        return reply.send(
          HTTPAnswer(
            status: 421, contentType: "text/plain", body: "use an IP address or localhost to reach this server\n"))
      }
      guard request.method == "GET" || request.method == "HEAD" else {
        return reply.send(
          HTTPAnswer(
            status: 405, contentType: "text/plain", headers: ["Allow": "GET, HEAD"],
            body: "only GET and HEAD are supported\n"))
      }
      let path = request.target.prefix { $0 != UInt8(ascii: "?") }
      pages(String(decoding: path, as: UTF8.self), Self.isLoopback(request.peerAddress), reply)
    }
  }

  static func isLoopback(_ address: some Sequence<UInt8>) -> Bool {
    address.starts(with: "127.".utf8) || address.elementsEqual("::1".utf8) || address.starts(with: "::ffff:127.".utf8)
  }

  /// True if a request to a loopback listener uses a name other than localhost. In a DNS rebinding attack, a web page makes its
  /// name resolve to this machine, so that a local browser lets it read the answers. Other listeners may have any name.
  static func isMisled(_ name: String, to listener: String) -> Bool {
    guard listener == "localhost" || isLoopback(listener.utf8), !name.hasPrefix("[") else { return false }
    let name = name.prefix { $0 != ":" }.lowercased()
    return name != "localhost" && !name.allSatisfy { $0.isASCII && $0.isNumber || $0 == "." }
  }
}
