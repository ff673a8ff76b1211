import DeviceRegistry
import PushCore
import Reactor
import Settings
import StatusHTTP
import Wire

/// The HTTP door: authenticates callers and routes requests. Plain HTTP is served in turns of the loop. TLS has a separate
/// thread, because handshakes take long; it passes requests to the loop.
final class HTTPDoor: Door, TurnHook {
  private let context: GatewayContext
  private let server: HTTPServer
  private let isTLS: Bool
  private(set) var expiry: CertificateExpiry?
  private var watch: ForeignDescriptor?
  private var isTurnScheduled = false
  private var isClosed = false
  private let parts: GatewayParts
  private var rates = CallerRates(rate: 10, burst: 100)
  /// Of failed logins, by address.
  private var failures = CallerRates(rate: 1 / 60, burst: 10)
  /// Delayed answers to wrong keys.
  private var penalties = 0

  /// The headers that the server keeps.
  private static let headers = [
    "authorization", "content-type", "content-encoding", "idempotency-key", "traceparent", "project_id",
    "cookie", "x-pushfleet-console",
  ]
  private static let idle: UInt32 = 15
  /// Seconds by which an answer to a wrong key is delayed, and how many such answers may wait at once.
  private static let (penalty, mostPenalties) = (1.0, 1_024)

  /// Seconds between checks of connections that still use an earlier certificate.
  private static let retiredPause = 5.0

  /// - Parameter connections: the most open connections.
  /// - Throws: `ConfigurationError` if the address can't be used, `AddressUnavailable` if it may be usable later.
  init(_ settings: GatewayHTTPSettings, connections: Int, _ context: GatewayContext) throws {
    self.context = context
    parts = try GatewayParts(context, settings)
    let side = LoopSide<HTTPDoor>(context.loop.mailbox)
    let certificate = try settings.loadCertificate()
    expiry = certificate?.expiry
    let isTLS = certificate != nil
    self.isTLS = isTLS
    let limits = HTTPServerLimits(
      connections: UInt32(connections), idle: Self.idle, body: context.configuration.limits.json.bytes)
    do throws(HTTPServerError) {
      server = try HTTPServer(
        host: settings.listen.host, port: settings.listen.port, limits: limits,
        headers: Self.headers + (settings.login?.headers ?? []), single: settings.login?.ofUser ?? [],
        identity: certificate?.pem, isDriven: !isTLS,
        refused: { status in
          if isTLS { side.note { $0.noteRefused(status) } } else { side.note(here: { $0.noteRefused(status) }) }
        },
        // Bodies of requests whose credential can't be valid are not kept.
        keeps: { [login = settings.login] headers in
          if let text = HTTPCall.credential(in: headers) {
            return NewSecret.id(in: text, .key) != nil || NewSecret.id(in: text, .device) != nil || AccessToken(text) != nil
          }
          return HTTPCall.session(in: headers) != nil || login.map { headers[$0.userHeader] != nil } == true
        }
      ) { request, reply in
        if isTLS { side.pass(reply) { $0.take(request, reply) } } else { side.pass(here: reply) { $0.take(request, reply) } }
      }
    } catch {
      let setting = "gateway.http.listen"
      guard !error.isPassing else { throw AddressUnavailable(setting: setting, reason: "\(error)") }
      throw ConfigurationError(key: setting, problem: "cannot be used: \(error)")
    }
    side.handler = self
    if !isTLS {
      do throws(SystemError) {
        watch = try ForeignDescriptor(server.descriptor, loop: context.loop) { [unowned self] in turn() }
      } catch {
        throw ConfigurationError(key: "gateway.http.listen", problem: "cannot be used: \(error)")
      }
      context.loop.afterEvents(self)
    }
    context.log.info("the HTTP door is open", ["address": "\(settings.listen)", "tls": isTLS])
  }

  func drain() {
    server.quiesce()
    parts.letters.close()
  }
  var isIdle: Bool { server.waiting == 0 && parts.letters.isIdle }

  func close() {
    isClosed = true
    watch?.close()
    watch = nil
    server.stop()
  }

  // MARK: turns of the server

  private func turn() {
    guard !isClosed, server.turn(), !isTurnScheduled else { return }
    isTurnScheduled = true
    context.loop.schedule(after: 0) { [weak self] in
      self?.isTurnScheduled = false
      self?.turn()
    }
  }

  /// Answers are sent in the turn in which they were given.
  func turnEnding(at now: MonotonicTime) {
    if !isTLS, server.hasAnswers { turn() }
  }

  /// The library closes silent connections in its turns. Connections that send slowly all the time are closed here.
  func lookAround() {
    guard !isClosed else { return }
    server.endSlow()
    if !isTLS { turn() }
  }

  // MARK: other settings

  /// Replaces applications, certificate and key.
  func reload(_ configuration: Configuration) throws(ConfigurationError) {
    parts.reload(configuration)
    guard isTLS, let certificate = try configuration.gateway?.http?.loadCertificate() else { return }
    do throws(HTTPServerError) { try server.renew(certificate.pem) } catch {
      throw ConfigurationError(key: "gateway.http.certificate", problem: "cannot be used: \(error)")
    }
    expiry = certificate.expiry
    endRetired()
  }

  private func endRetired() {
    guard !isClosed, !server.endRetired() else { return }
    context.loop.schedule(after: Self.retiredPause) { [weak self] in self?.endRetired() }
  }

  // MARK: requests

  private func noteRefused(_ status: Int) { context.figures.answered(status, after: 0) }

  private func take(_ request: HTTPRequest, _ reply: HTTPReply) {
    guard let call = HTTPCall(request, reply, parts) else {
      context.figures.answered(400, after: 0)
      return reply.send(ErrorFormat.legacy.answer(.badTarget))
    }
    guard let route = Routes.route(call) else { return call.refuse(.noSuchPlace) }
    guard route.methods.contains(request.method) else {
      return call.refuse(.wrongMethod(request.method, allowed: route.methods.joined(separator: ", ")))
    }
    if let encoding = call.header("content-encoding"), !encoding.elementsEqual("identity".utf8) {
      return call.refuse(.badEncoding)
    }
    switch route.work {
    case .open(let work): work(call)
    case .keyed(let rights, let work): parts.keys.admit(call.credential, then: enter(call, route, rights, work))
    case .console(let rights, let work): admitOperator(call, enter(call, route, rights, work))
    case .login(let work):
      guard call.isOfConsole else { return call.refuse(.foreign) }
      let origin = [call.origin]
      guard failures.admits(origin, at: context.loop.now) else {
        let words = "too many failed logins from your address"
        return call.answer(.own(429, "TooManyRequests", words, headers: ["Retry-After": "60"]))
      }
      guard let secret = call.loginKey else {
        return call.answer(.own(401, "Unauthorized", "the body must be a JSON object with the member key: an operator's key"))
      }
      let key = NewSecret.id(in: secret, .key) == nil ? [] : secret
      let verdict = enter(call, route, ConsoleRoutes.rights) { [weak self] call, key throws(Fault) in
        self?.failures.giveBack(origin)
        try work(call, key)
      }
      parts.keys.admit(key, then: verdict)
    case .installation(let right, let work): admitInstallationCaller(call, route, right, work)
    case .account(let work): admitAccount(call, enter(call, route, Set(KeyRight.allCases), work))
    }
  }

  /// Does the work for a key that has one of the rights. Refuses the call of any other key.
  private func enter(
    _ call: HTTPCall, _ route: Route, _ rights: Set<KeyRight>, _ work: @escaping (HTTPCall, GatewayKey) throws(Fault) -> Void
  ) -> KeyCache.Verdict {
    { [weak self] verdict in
      switch verdict {
      case .success(let key) where key.rights.isDisjoint(with: rights): call.refuse(.noRight(rights))
      case .success(let key): do throws(Fault) { try work(call, key) } catch { call.refuse(error) }
      case .failure(let fault) where fault == .noKey || fault == .wrongKey: self?.deny(call, route, fault)
      case .failure(let fault): call.refuse(fault)
      }
    }
  }

  private func admitOperator(_ call: HTTPCall, _ then: @escaping KeyCache.Verdict) {
    guard call.credential == nil else { return parts.keys.admit(call.credential, then: then) }
    guard let session = call.session.flatMap({ parts.sessions.find($0, at: context.loop.now) }) else {
      guard let user = call.proxyUser else { return then(.failure(call.session == nil ? .noKey : .wrongKey)) }
      // Another site can make a browser open an address with the proxy's cookie.
      guard call.isOfConsole else { return call.refuse(.foreign) }
      guard let id = user.key else { return call.refuse(.noGroup) }
      // Records of operations name the user, whom a proxy has authenticated, instead of the key.
      return parts.keys.admit(id, by: { _ in true }) { verdict in
        then(
          verdict.map { key in
            var key = key
            (key.id, key.name) = (user.name, nil)
            return key
          })
      }
    }
    guard call.isOfConsole || ["GET", "HEAD"].contains(call.request.method) else { return call.refuse(.foreign) }
    parts.keys.admit(session.keyID, by: { $0.hash == session.hash }, then: then)
  }

  private func admitAccount(_ call: HTTPCall, _ then: @escaping KeyCache.Verdict) {
    do throws(Fault) {
      let assertion = try Assertion(call.request.body)
      parts.keys.admit(
        assertion.keyID, by: { [context] in assertion.isGood(for: $0, at: context.loop.wallClock / 1_000) }, then: then)
    } catch { then(.failure(error)) }
  }

  private func admitInstallationCaller(
    _ call: HTTPCall, _ route: Route, _ right: KeyRight, _ work: @escaping Route.InstallationWork
  ) {
    let (app, installation) = (call.app, call.installation)
    guard let secret = call.credential, NewSecret.id(in: secret, .device) != nil else {
      let verdict = enter(call, route, [right]) { call, key throws(Fault) in
        guard key.apps.contains(app) else { throw .foreignApp }
        call.isBackend = true
        try work(call)
      }
      return parts.keys.admit(call.credential, then: verdict)
    }
    call.ask(.read { try $0.secret(ofInstallation: installation, app: app) }) { [weak self] hash in
      guard let self else { return }
      guard let hash, Digest.areEqual(Digest.sha256(secret), hash) else { return deny(call, route, .wrongKey) }
      guard rates.admits([app, installation], at: context.loop.now) else { return call.refuse(.tooMany) }
      do throws(Fault) { try work(call) } catch { call.refuse(error) }
    }
  }

  /// Delays the answer, so that guessing takes time. With too many delayed answers, answers at once and closes the connection.
  /// Logins are counted instead.
  private func deny(_ call: HTTPCall, _ route: Route, _ fault: Fault) {
    var answer = call.errorFormat.answer(fault)
    if case .login = route.work { return call.answer(answer) }
    guard penalties < Self.mostPenalties else {
      answer.headers["Connection"] = "close"
      return call.answer(answer)
    }
    penalties += 1
    context.loop.schedule(after: Self.penalty) { [weak self] in
      self?.penalties -= 1
      call.answer(answer)
    }
  }
}
