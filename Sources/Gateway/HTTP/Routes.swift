import DeviceRegistry
import PushCore
import Settings
import StatusHTTP

/// The handler of a path.
struct Route {
  enum Work {
    /// For all callers.
    case open((HTTPCall) -> Void)
    /// For keys with one of the rights.
    case keyed(Set<KeyRight>, (HTTPCall, GatewayKey) -> Void)
    /// The same, and for sessions of the console with such a key.
    case console(Set<KeyRight>, (HTTPCall, GatewayKey) -> Void)
    /// For callers with such a key in the body.
    case login((HTTPCall, GatewayKey) -> Void)
    /// For the installation in the path, by its secret, and for keys to its application with the right.
    case installation(KeyRight, (HTTPCall, InstallationCaller) -> Void)
    /// For callers with a signed assertion of a service account.
    case account((HTTPCall, GatewayKey) -> Void)
  }

  var methods: [String]
  var errorFormat: ErrorFormat
  var work: Work
}

extension Route {
  typealias FleetWork = (HTTPCall, GatewayKey) -> Void

  /// Shows something of the fleet.
  static func view(_ work: @escaping FleetWork) -> Route {
    Route(methods: ["GET"], errorFormat: .own, work: .console(ConsoleRoutes.rights, work))
  }

  /// Changes something of the fleet.
  static func operate(_ work: @escaping FleetWork) -> Route {
    Route(methods: ["POST"], errorFormat: .own, work: .console([.operate], work))
  }
}

/// The paths of the HTTP door (docs/openapi.yaml).
final class Routes {
  private let context: GatewayContext
  private let registry: RegistryClient
  private let services: Services
  private let configuration: Configuration
  private let applications: GatewayApplications
  /// A reload doesn't change these settings.
  private var http: GatewayHTTPSettings? { context.configuration.gateway?.http }

  private lazy var send = GCMSend(applications: applications, service: services.send)
  private lazy var v1 = V1Send(applications: applications, service: services.send)
  private lazy var messages = Messages(applications: applications, service: services.send, keys: services.keys)
  private lazy var messageStates = MessageStates(service: services.send, registry: registry)
  private lazy var gorush = GorushPush(
    applications: applications, service: services.send, keys: services.keys, figures: context.figures.gorush)
  private var imports: TokenImport {
    TokenImport(changes: services.changes, registry: registry, takesUnknown: http?.registersUnknown ?? true)
  }
  private lazy var groups = DeviceGroups(
    applications: applications, changes: services.changes, registry: registry, imports: imports)
  private lazy var instances = InstanceID(
    applications: applications, changes: services.changes, registry: registry, imports: imports)
  private lazy var installations = Installations(
    applications: applications, changes: services.changes, registry: registry, takesUsersOfDevices: http?.deviceUsers ?? true)
  private lazy var subscriptions = TopicSubscriptions(
    applications: applications, changes: services.changes, registry: registry, imports: imports, time: context.loop.time)
  private lazy var acknowledgements = Acknowledgements(changes: services.changes, time: context.loop.time)
  private lazy var pages = ContentPages(registry: registry)
  private lazy var console = ConsoleRoutes(
    sessions: services.sessions, isTLS: http?.identity != nil, time: context.loop.time)
  private lazy var letters = LetterRoutes(
    applications: applications, registry: registry, jobs: services.letters, topology: context.topology,
    time: context.loop.time)
  private lazy var fleetMessages = FleetMessages(
    applications: applications, registry: registry, messages: messages, states: messageStates,
    configuration: configuration, explain: context.explain, traces: services.traces)
  private lazy var fleet = FleetOperations(
    applications: applications, registry: registry, status: context.fleet, time: context.loop.time, letters: letters,
    messages: fleetMessages)

  /// The parts that outlive a change of the applications.
  struct Services {
    let send: SendService
    let changes: ChangeService
    let keys: KeyCache
    let sessions = ConsoleSessions()
    let letters: LetterJobs
    let traces: FleetTraces

    init(_ context: GatewayContext, _ settings: GatewayHTTPSettings, _ keys: KeyCache, _ registry: RegistryClient) {
      traces = FleetTraces(context)
      letters = LetterJobs(context.letters, registry, context)
      self.keys = keys
      send = SendService(
        context, wait: settings.wait, retransmission: settings.retransmission, sharesAll: settings.isShared)
      changes = ChangeService(context, wait: settings.wait)
    }
  }

  init(_ context: GatewayContext, _ registry: RegistryClient, _ services: Services, _ configuration: Configuration) {
    self.context = context
    self.registry = registry
    self.services = services
    self.configuration = configuration
    applications = GatewayApplications(configuration)
  }

  /// The fixed words of paths. All other parts are names of applications or devices.
  static let words: Set = [
    "livez", "readyz", "token", "pages", "gcm", "fcm", "send", "notification", "iid", "info", "v1", "rel", "topics",
    "v1:batchAdd",
    "v1:batchRemove", "v1:batchImport", "projects", "messages:send", "registrations", "topicSubscriptions", "apps",
    "installations", "user", "secret", "groups", "badge", "acks", "fleet", "lanes", "credentials", "campaigns", "audit",
    "pause", "drain",
    "resume", "rate", "cancel", "status", "messages", "api", "push", "stat", "app",
    "console", "login", "logout", "session", "devices", "dead", "held", "jobs", "replay", "drop", "discard", "stop", "explain",
    "test", "forget", "trace", "unreached", "webhooks", "go", "config", "sys", "stats", "metrics",
  ]

  /// As with Google, a key that may send may also form groups and topics of tokens that it knows.
  private static let senders: Set<KeyRight> = [.send, .register]

  /// Nil if the path doesn't exist.
  func route(_ call: HTTPCall) -> Route? {
    let path = call.path.map { String(decoding: $0, as: UTF8.self) }
    if context.configuration.gateway?.isConsole == true, !Self.isOfConsole(path) { return nil }
    switch (path.first, path.count) {
    case ("livez", 1): return probe { .text(200, "alive\n") }
    case ("readyz", 1):
      return probe { [context] in context.readiness }
    case ("token", 1): return Route(methods: ["POST"], errorFormat: .oauth, work: .account(giveToken))
    case ("pages", 2): return Route(methods: ["GET", "HEAD"], errorFormat: .own, work: .open(pages.take))
    case ("gcm", 2), ("fcm", 2): return legacy(path[1])
    case ("iid", _): return instance(path)
    case ("api", 2) where path[1] == "push":
      return Route(methods: ["POST"], errorFormat: .gorush, work: .keyed([.send], gorush.take))
    case ("api", 3) where path[1] == "stat" && path[2] == "app":
      return Route(methods: ["GET"], errorFormat: .gorush, work: .keyed([.send], stat))
    case ("api", 3) where path[1] == "stat" && path[2] == "go", ("api", 2) where path[1] == "config",
      ("sys", 2) where path[1] == "stats", ("metrics", 1):
      return Route(methods: ["GET"], errorFormat: .gorush, work: .open(refuseFigures))
    case ("v1", 4) where path[1] == "projects" && path[3] == "messages:send":
      return Route(methods: ["POST"], errorFormat: .google, work: .keyed([.send], v1.take))
    case ("v1", 6) where Self.isOfSubscriptions(path):
      return Route(methods: ["GET", "POST"], errorFormat: .google, work: .keyed(Self.senders, subscriptions.takeAll))
    case ("v1", 7) where Self.isOfSubscriptions(path):
      return Route(
        methods: ["GET", "DELETE", "PATCH"], errorFormat: .google, work: .keyed(Self.senders, subscriptions.takeOne))
    case ("console", 1...2): return console.route(call, path)
    case ("v1", 3...6) where path[1] == "fleet": return fleet.route(path)
    case ("v1", 4) where path[1] == "apps" && path[3] == "acks": return Route(methods: ["POST"], errorFormat: .own, work: acks)
    case ("v1", 4) where path[1] == "apps" && path[3] == "messages":
      return Route(methods: ["POST"], errorFormat: .own, work: .keyed([.send], messages.take))
    case ("v1", 5) where path[1] == "apps" && path[3] == "messages":
      return Route(
        methods: ["GET"], errorFormat: .own,
        work: .keyed([.send]) { [messageStates] call, key in
          messageStates.take(call, key, app: call.path[2], id: call.path[4])
        })
    case ("v1", 5...7) where path[1] == "apps" && path[3] == "installations": return installation(path)
    default: return nil
    }
  }

  private static func isOfConsole(_ path: [String]) -> Bool {
    ["livez", "readyz", "console"].contains(path.first) || path.starts(with: ["v1", "fleet"])
  }

  private static func isOfSubscriptions(_ path: [String]) -> Bool {
    path[1] == "projects" && path[3] == "registrations" && path[5] == "topicSubscriptions"
  }

  private func probe(_ answer: @escaping () -> HTTPAnswer) -> Route {
    Route(methods: ["GET", "HEAD"], errorFormat: .own, work: .open { $0.answer(answer()) })
  }

  /// Answers a token request (RFC 6749 §5.1).
  private func giveToken(_ call: HTTPCall, _ key: GatewayKey) {
    let token = AccessToken(for: key, at: context.loop.wallClock / 1_000)
    call.answer(
      .json(
        200, headers: ["Cache-Control": "no-store"],
        ["access_token": token.text, "expires_in": AccessToken.lifetime, "token_type": "Bearer"]))
  }

  private func stat(_ call: HTTPCall, _ key: GatewayKey) {
    call.answer(context.figures.gorush.answer(of: key, version: context.version))
  }

  /// Answers gorush's paths of figures about its own process.
  private func refuseFigures(_ call: HTTPCall) {
    let path = call.path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    call.answer(.gorush(404, "/\(path) of gorush is not supported: the figures are at /metrics of gateway.metrics"))
  }

  private func legacy(_ place: String) -> Route? {
    switch place {
    case "send": Route(methods: ["POST"], errorFormat: .legacy, work: .keyed([.send], send.take))
    case "notification": Route(methods: ["GET", "POST"], errorFormat: .instance, work: .keyed(Self.senders, groups.take))
    default: nil
    }
  }

  private func instance(_ path: [String]) -> Route? {
    let work: (HTTPCall, GatewayKey) -> Void
    var rights = Self.senders
    switch (path.count, path.dropFirst().first) {
    case (3, "info"): return Route(methods: ["GET"], errorFormat: .instance, work: .keyed([.register], instances.info))
    case (2, "v1:batchAdd"): work = instances.batchAdd
    case (2, "v1:batchRemove"): work = instances.batchRemove
    case (2, "v1:batchImport"): (work, rights) = (instances.batchImport, [.register])
    case (6, "v1") where path[3] == "rel" && path[4] == "topics": work = instances.join
    default: return nil
    }
    return Route(methods: ["POST"], errorFormat: .instance, work: .keyed(rights, work))
  }

  private func installation(_ path: [String]) -> Route? {
    func route(_ methods: [String], _ work: @escaping (HTTPCall, InstallationCaller) -> Void) -> Route {
      Route(methods: methods, errorFormat: .own, work: .installation(.register, work))
    }
    guard path.count > 5 else {
      return route(["GET", "PUT", "DELETE"]) { [installations] call, caller in
        switch call.request.method {
        case "GET": installations.get(call, caller)
        case "PUT": installations.put(call, caller)
        default: installations.delete(call, caller)
        }
      }
    }
    switch (path[5], path.count) {
    case ("user", 6):
      return route(["PUT", "DELETE"]) { [installations] call, caller in
        call.request.method == "PUT" ? installations.putUser(call, caller) : installations.deleteUser(call, caller)
      }
    case ("secret", 6): return route(["POST"], installations.renewSecret)
    case ("groups", 7): return route(["PUT", "DELETE"], installations.group)
    case ("topics", 7): return route(["PUT", "DELETE"], installations.topic)
    case ("badge", 6):
      return Route(
        methods: ["PUT", "DELETE"], errorFormat: .own,
        work: .installation(.ack) { [acknowledgements] call, caller in
          call.request.method == "PUT" ? acknowledgements.badge(call, caller) : acknowledgements.clearBadge(call, caller)
        })
    case ("acks", 6):
      return Route(
        methods: ["POST"], errorFormat: .own,
        work: .installation(.ack) { [acknowledgements] call, caller in
          acknowledgements.take(call, caller.app, installation: caller.installation)
        })
    default: return nil
    }
  }

  /// Acknowledgements by a backend, for any device of its application.
  private var acks: Route.Work {
    .keyed([.ack]) { [acknowledgements] call, key in
      guard key.apps.contains(call.path[2]) else { return call.refuse(.foreignApp) }
      acknowledgements.take(call, call.path[2], installation: nil)
    }
  }
}
