/// A server of short texts: GET and HEAD only, without bodies of requests.
///
/// So many connections at once, and so many idle seconds each: who opens connections and says nothing delays a probe by these seconds
/// at most.
extension HTTPServer {
  public typealias Answer = HTTPAnswer
  /// Maps a path to what it answers.
  public typealias Pages = @Sendable (String) -> HTTPAnswer
  /// Takes a path, whose answer may come later.
  public typealias LatePages = @Sendable (String, HTTPReply) -> Void

  /// - Parameter host: an address, or a name whose first address is taken.
  public convenience init(host: String, port: UInt16, handler: @escaping Pages) throws(HTTPServerError) {
    try self.init(host: host, port: port, lateHandler: { path, reply in reply.send(handler(path)) })
  }

  /// - Parameter host: an address, or a name whose first address is taken.
  public convenience init(host: String, port: UInt16, lateHandler: @escaping LatePages) throws(HTTPServerError) {
    let limits = HTTPServerLimits(connections: 128, idle: 2, body: 4_096)
    try self.init(host: host, port: port, limits: limits, headers: ["host"]) { request, reply in
      guard !Self.isMisled(String(decoding: request.headers["host"] ?? [], as: UTF8.self), to: host) else {
        return reply.send(
          HTTPAnswer(
            status: 421, contentType: "text/plain", body: "a listener on loopback is asked by an address or as localhost\n"))
      }
      guard request.method == "GET" || request.method == "HEAD" else {
        return reply.send(
          HTTPAnswer(
            status: 405, contentType: "text/plain", headers: ["Allow": "GET, HEAD"],
            body: "only GET and HEAD are answered here\n"))
      }
      let path = request.target.prefix { $0 != UInt8(ascii: "?") }
      lateHandler(String(decoding: path, as: UTF8.self), reply)
    }
  }

  /// Whether a request to a listener on loopback has another name than that machine's own: a page of the net, in a browser of this machine, that has
  /// had its name lead here reads what it is answered (DNS rebinding). Elsewhere names are the network's.
  static func isMisled(_ name: String, to listener: String) -> Bool {
    guard listener == "localhost" || listener == "::1" || listener.hasPrefix("127."), !name.hasPrefix("[") else { return false }
    let name = name.prefix { $0 != ":" }.lowercased()
    return name != "localhost" && !name.allSatisfy { $0.isASCII && $0.isNumber || $0 == "." }
  }
}
