import DeviceRegistry
import PushCore
import Reactor
import Settings
import StatusHTTP
import TLS
import Wire

/// The HTTP door: asks who comes, and finds who answers. Plain HTTP is served in turns of the loop; TLS, whose handshakes take long, on a thread of
/// its own, from which requests are taken to the loop.
final class HTTPDoor: Door, TurnHook {
  private let context: GatewayContext
  private let server: HTTPServer
  private let isTLS: Bool
  private(set) var expiry: CertificateExpiry?
  private var watch: ForeignDescriptor?
  private var isTurnScheduled = false
  private var isClosed = false
  private let registry: RegistryClient
  private let ring: KeyRing
  private let desks: Routes.Desks
  private var routes: Routes
  private var rates = DeviceRates()
  /// Answers to wrong keys that are held back.
  private var penalties = 0

  /// What requests are read for.
  private static let headers = [
    "authorization", "content-type", "content-encoding", "idempotency-key", "traceparent", "project_id",
  ]
  private static let idle: UInt32 = 15
  /// Seconds that a wrong key costs, and how many such answers are held back at once: others must find room.
  private static let (penalty, mostPenalties) = (1.0, 1_024)

  /// Seconds between two looks at the connections that serve out an earlier certificate.
  private static let retiredPause = 5.0

  /// - Parameter connections: at most so many at once.
  /// - Throws: `ConfigurationError` when it can't be listened where the setting says, `PlaceTaken` when it perhaps can later.
  init(_ settings: GatewayHTTPSettings, connections: Int, _ context: GatewayContext) throws {
    self.context = context
    guard let registry = context.registry else { throw ConfigurationError.missingDoorRegistry }
    self.registry = registry
    ring = KeyRing(registry, loop: context.loop)
    desks = Routes.Desks(context, settings)
    routes = Routes(context, registry, desks, GatewayApplications(context.configuration))
    let side = LoopSide<HTTPDoor>(context.loop.mailbox)
    let certificate = try settings.loadCertificate()
    expiry = certificate?.expiry
    let isTLS = certificate != nil
    self.isTLS = isTLS
    let limits = HTTPServerLimits(
      connections: UInt32(connections), idle: Self.idle, body: context.configuration.limits.json.bytes)
    do throws(HTTPServerError) {
      server = try HTTPServer(
        host: settings.listen.host, port: settings.listen.port, limits: limits, headers: Self.headers,
        identity: certificate?.served, isDriven: !isTLS,
        refused: { status in
          if isTLS { side.note { $0.noteRefused(status) } } else { side.note(here: { $0.noteRefused(status) }) }
        },
        // What is no key by its form opens nothing.
        keeps: { headers in
          HTTPCall.credential(in: headers).map { text in
            NewSecret.id(in: text, .key) != nil || NewSecret.id(in: text, .device) != nil || AccessToken(text) != nil
          } ?? false
        }
      ) { request, reply in
        if isTLS { side.pass(reply) { $0.take(request, reply) } } else { side.pass(here: reply) { $0.take(request, reply) } }
      }
    } catch {
      let setting = "gateway.http.listen"
      guard !error.isPassing else { throw PlaceTaken(setting: setting, reason: "\(error)") }
      throw ConfigurationError(key: setting, problem: "cannot be used: \(error)")
    }
    side.desk = self
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

  func drain() { server.quiesce() }
  var isIdle: Bool { server.waiting == 0 }

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

  /// Answers go out in the turn in which they were given.
  func turnEnding(at now: MonotonicTime) {
    if !isTLS, server.hasAnswers { turn() }
  }

  /// The library ends silent connections when it has its turn; those that say something all the time are ended here.
  func lookAround() {
    guard !isClosed else { return }
    server.endSlow()
    if !isTLS { turn() }
  }

  // MARK: other settings

  /// Takes over the applications, and certificate and key.
  func reload(_ configuration: Configuration) throws(ConfigurationError) {
    routes = Routes(context, registry, desks, GatewayApplications(configuration))
    guard isTLS, let certificate = try configuration.gateway?.http?.loadCertificate() else { return }
    do throws(HTTPServerError) { try server.renew(certificate.served) } catch {
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
    guard let call = HTTPCall(request, reply, context) else {
      context.figures.answered(400, after: 0)
      return reply.send(Manner.legacy.answer(.badTarget))
    }
    guard let route = routes.route(call) else { return call.answer(Manner.own.answer(.noSuchPlace)) }
    guard route.methods.contains(request.method) else {
      return call.answer(route.manner.answer(.wrongMethod(request.method, allowed: route.methods.joined(separator: ", "))))
    }
    if let encoding = call.header("content-encoding"), !encoding.elementsEqual("identity".utf8) {
      return call.answer(route.manner.answer(.badEncoding))
    }
    switch route.work {
    case .open(let work): work(call)
    case .keyed(let rights, let work): admit(call, route, rights, work)
    case .installation(let right, let work): admitVisitor(call, route, right, work)
    case .account(let work): admitAccount(call, route, work)
    }
  }

  private func admit(
    _ call: HTTPCall, _ route: Route, _ rights: Set<KeyRight>, _ work: @escaping (HTTPCall, GatewayKey) -> Void
  ) {
    guard let text = call.credential else { return deny(call, route.manner, .noKey) }
    ring.admit(text) { [weak self] verdict in
      self?.follow(verdict, call, route) { call, key in
        guard !key.rights.isDisjoint(with: rights) else { return call.answer(route.manner.answer(.notAllowed)) }
        work(call, key)
      }
    }
  }

  private func admitAccount(_ call: HTTPCall, _ route: Route, _ work: @escaping (HTTPCall, GatewayKey) -> Void) {
    let assertion: Assertion
    do throws(Fault) { assertion = try Assertion(call.request.body) } catch {
      return error == .wrongKey ? deny(call, route.manner, error) : call.answer(route.manner.answer(error))
    }
    ring.admit(assertion.keyID, by: { [context] in assertion.isGood(for: $0, at: context.loop.wallClock / 1_000) }) {
      [weak self] verdict in self?.follow(verdict, call, route, work)
    }
  }

  private func follow(
    _ verdict: Result<GatewayKey, KeyRing.Denial>, _ call: HTTPCall, _ route: Route, _ work: (HTTPCall, GatewayKey) -> Void
  ) {
    switch verdict {
    case .success(let key): work(call, key)
    case .failure(.wrong): deny(call, route.manner, .wrongKey)
    case .failure(.tooMany): call.answer(route.manner.answer(.tooMany))
    case .failure(.unknown): call.answer(route.manner.answer(.unavailable("the keys can't be read for now")))
    }
  }

  private func admitVisitor(
    _ call: HTTPCall, _ route: Route, _ right: KeyRight, _ work: @escaping (HTTPCall, Visitor) -> Void
  ) {
    let (app, installation) = (call.path[2], call.path[4])
    guard let secret = call.credential, NewSecret.id(in: secret, .device) != nil else {
      return admit(call, route, [right]) { call, key in
        guard key.apps.contains(app) else { return call.answer(route.manner.answer(.notAllowed)) }
        work(call, Visitor(app: app, installation: installation, isBackend: true))
      }
    }
    registry.call(.read { try $0.secret(ofInstallation: installation, app: app) }) { [weak self] result in
      switch result {
      case .success(let hash):
        guard let hash, Digest.areEqual(Digest.sha256(secret), hash) else {
          self?.deny(call, route.manner, .wrongKey)
          return
        }
        guard let self else { return }
        guard rates.admits(app, installation, at: context.loop.now) else { return call.answer(route.manner.answer(.tooMany)) }
        work(call, Visitor(app: app, installation: installation, isBackend: false))
      case .failure: call.answer(route.manner.answer(.unavailable("the registry can't be read for now")))
      }
    }
  }

  /// Late, so that guessing takes time; at the end of the connection where too many are late already.
  private func deny(_ call: HTTPCall, _ manner: Manner, _ fault: Fault) {
    var answer = manner.answer(fault)
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

extension DoorCertificate {
  fileprivate var served: HTTPServerIdentity { HTTPServerIdentity(certificate: certificate, key: key) }
}
