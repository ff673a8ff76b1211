import DeviceRegistry
import PushCore
import Reactor
import Settings
import StatusHTTP

/// `/console/…`: the files of the console, and its logins. All data comes from `/v1/fleet/…`.
enum ConsoleRoutes {
  /// Nil if the path doesn't exist.
  static func route(_ call: HTTPCall, _ path: [String]) -> Route? {
    func get(_ work: Route.Work) -> Route { Route(["GET", "HEAD"], .own, work) }
    func post(_ work: Route.Work) -> Route { Route(["POST"], .own, work) }
    switch path.dropFirst().first ?? "" {
    case "login": return post(.login(logIn))
    case "logout": return post(.open(logOut))
    // A browser without a session is no wrong key.
    case "session" where call.session == nil && call.proxyUser == nil:
      return get(.open { $0.answer(.json(200, [:])) })
    case "session": return get(.console(Self.rights, describe))
    case let name: return PageFiles.console.answer(name).map { answer in get(.open { $0.answer(answer) }) }
    }
  }

  static let rights: Set<KeyRight> = [.view, .operate]

  private static func logIn(_ call: HTTPCall, _ key: GatewayKey) {
    let secret = call.parts.sessions.open(key, at: call.time.now)
    call.answer(Self.description(key, cookie: cookie(String(decoding: secret, as: UTF8.self), ConsoleSessions.lifetime, call)))
  }

  private static func logOut(_ call: HTTPCall) {
    guard call.isOfConsole else { return call.refuse(.foreign) }
    if let secret = call.session { call.parts.sessions.close(secret) }
    call.answer(.json(200, headers: ["Set-Cookie": cookie("", 0, call)], [:]))
  }

  private static func describe(_ call: HTTPCall, _ key: GatewayKey) { call.answer(Self.description(key)) }

  private static func description(_ key: GatewayKey, cookie: String? = nil) -> HTTPAnswer {
    .json(
      200, headers: ["Cache-Control": "no-store"].merging(cookie.map { ["Set-Cookie": $0] } ?? [:]) { $1 },
      ["key": key.title, "rights": key.rightNames, "apps": key.apps])
  }

  private static func cookie(_ value: String, _ seconds: Int, _ call: HTTPCall) -> String {
    let secure = call.parts.http.identity != nil || call.forwarded("x-forwarded-proto") == "https" ? "; Secure" : ""
    return "\(ConsoleSessions.cookie)=\(value); Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Strict\(secure)"
  }
}

extension HTTPCall {
  /// True if the request has a header that pages of other sites can't send.
  var isOfConsole: Bool { header("x-pushfleet-console") != nil }

  /// The user whom a proxy has authenticated, and the id of the user's key.
  var proxyUser: (name: [UInt8], key: [UInt8]?)? { login?.user(peer: request.peerAddress) { header($0) } }

  /// The last element of a header that tells about the caller of a proxy; nil if it isn't from a proxy of `login`.
  func forwarded(_ name: String) -> String? {
    guard login?.isProxy(request.peerAddress) == true, let last = header(name)?.split(separator: UInt8(ascii: ",")).last else {
      return nil
    }
    return String(decoding: last.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self)
  }

  /// The caller's address: what a proxy says, otherwise that of the connection.
  var origin: [UInt8] {
    guard let text = forwarded("x-forwarded-for"), NumericAddress.bytes(text) != nil else { return request.peerAddress }
    return Array(text.utf8)
  }

  /// The secret of the console's session in the cookie.
  var session: [UInt8]? { Self.session(in: request.headers) }

  static func session(in headers: [String: [UInt8]]) -> [UInt8]? {
    headers["cookie"]?.split(separator: UInt8(ascii: ";")).lazy
      .map { $0.drop { $0 == 0x20 } }
      .first { $0.starts(with: "\(ConsoleSessions.cookie)=".utf8) }
      .map { Array($0.dropFirst(ConsoleSessions.cookie.utf8.count + 1)) }
  }

  /// The key in the body of a login: `{"key": …}`.
  var loginKey: [UInt8]? { (try? JSONDocument(request.body, limits: JSONLimits(bytes: 4_096)))?.string("key") }
}

extension PageFiles {
  static let console = PageFiles([
    "": PackageResources.console_html, "console.js": PackageResources.console_js, "letters.js": PackageResources.letters_js,
    "pages.js": PackageResources.pages_js, "runbook.md": PackageResources.runbook_md, "search.js": PackageResources.search_js,
    "testsend.js": PackageResources.testsend_js,
  ])
}
