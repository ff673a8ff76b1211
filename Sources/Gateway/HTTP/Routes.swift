import DeviceRegistry
import PushCore
import Settings
import StatusHTTP
import Wire

/// The handler of a path.
final class Route: Sendable {
  enum Work: Sendable {
    /// For all callers.
    case open(@Sendable (HTTPCall) -> Void)
    /// For keys with one of the rights.
    case keyed(Set<KeyRight>, KeyWork)
    /// The same, and for sessions of the console with such a key.
    case console(Set<KeyRight>, KeyWork)
    /// For callers with such a key in the body.
    case login(KeyWork)
    /// For the installation in the path, by its secret, and for keys to its application with the right.
    case installation(KeyRight, InstallationWork)
    /// For callers with a signed assertion of a service account.
    case account(KeyWork)
  }

  /// Throws the fault for which the call is refused, unless the work answers the call.
  typealias KeyWork = @Sendable (HTTPCall, GatewayKey) throws(Fault) -> Void
  /// The same for an installation.
  typealias InstallationWork = @Sendable (HTTPCall) throws(Fault) -> Void

  let methods: [String]
  let errorFormat: ErrorFormat
  let work: Work

  init(_ methods: [String], _ errorFormat: ErrorFormat, _ work: Work) {
    (self.methods, self.errorFormat, self.work) = (methods, errorFormat, work)
  }

  /// Routes by the patterns of their paths, in which `*` is any part.
  typealias Table = [(pattern: String, route: Route)]
}

extension Route {
  /// Shows something of the fleet.
  static func view(_ work: @escaping KeyWork) -> Route {
    Route(["GET"], .own, .console(ConsoleRoutes.rights, work))
  }

  /// Changes something of the fleet.
  static func operate(_ work: @escaping KeyWork) -> Route {
    Route(["POST"], .own, .console([.operate], work))
  }
}

/// The paths of the HTTP door (docs/openapi.yaml).
enum Routes {
  /// The fixed words of paths. All other parts are names of applications or devices.
  static let words = Set(rows.values.joined().flatMap(\.pattern)).subtracting(["*"])
    .union(["console", "login", "logout", "session"])

  /// As with Google, a key that may send may also form groups and topics of tokens that it knows.
  private static let senders: Set<KeyRight> = [.send, .register]

  /// Nil if the path doesn't exist. From now on the call refuses in the route's error format.
  static func route(_ call: HTTPCall) -> Route? {
    let route = find(call)
    if let route { call.errorFormat = route.errorFormat }
    return route
  }

  private static func find(_ call: HTTPCall) -> Route? {
    let path = call.path.map { String(decoding: $0, as: UTF8.self) }
    if call.context.configuration.gateway?.isConsole == true, !Self.isOfConsole(path) { return nil }
    if path.first == "console", path.count <= 2 { return ConsoleRoutes.route(call, path) }
    return rows[path.first ?? ""]?.first { $0.pattern.elementsEqual(path) { $0 == "*" || $0 == $1 } }?.route
  }

  /// By the first word of the path.
  private static let rows = Dictionary(
    grouping: table.map { (pattern: $0.pattern.split(separator: "/").map(String.init), route: $0.route) }
  ) { $0.pattern.first ?? "" }

  private static var table: Route.Table {
    [
      ("livez", probe { _ in .text(200, "alive\n") }), ("readyz", probe { $0.context.readiness }),
      ("token", Route(["POST"], .oauth, .account(Self.giveToken))),
      ("pages/*", Route(["GET", "HEAD"], .own, .open(ContentPages.take))),
      ("gcm/send", Route(["POST"], .legacy, .keyed([.send], GCMSend.take))),
      ("fcm/send", Route(["POST"], .legacy, .keyed([.send], GCMSend.take))),
      ("gcm/notification", Route(["GET", "POST"], .instance, .keyed(Self.senders, DeviceGroups.take))),
      ("fcm/notification", Route(["GET", "POST"], .instance, .keyed(Self.senders, DeviceGroups.take))),
      ("iid/info/*", Route(["GET"], .instance, .keyed([.register], InstanceID.info))),
      ("iid/v1:batchAdd", Route(["POST"], .instance, .keyed(Self.senders, InstanceID.batchAdd))),
      ("iid/v1:batchRemove", Route(["POST"], .instance, .keyed(Self.senders, InstanceID.batchRemove))),
      ("iid/v1:batchImport", Route(["POST"], .instance, .keyed([.register], InstanceID.batchImport))),
      ("iid/v1/*/rel/topics/*", Route(["POST"], .instance, .keyed(Self.senders, InstanceID.join))),
      ("api/push", Route(["POST"], .gorush, .keyed([.send], GorushPush.take))),
      ("api/stat/app", Route(["GET"], .gorush, .keyed([.send], Self.stat))),
      ("api/stat/go", Self.unsupported), ("api/config", Self.unsupported), ("sys/stats", Self.unsupported),
      ("metrics", Self.unsupported),
      ("v1/projects/*/messages:send", Route(["POST"], .google, .keyed([.send], V1Send.take))),
      (
        "v1/projects/*/registrations/*/topicSubscriptions",
        Route(["GET", "POST"], .google, .keyed(Self.senders, TopicSubscriptions.takeAll))
      ),
      (
        "v1/projects/*/registrations/*/topicSubscriptions/*",
        Route(["GET", "DELETE", "PATCH"], .google, .keyed(Self.senders, TopicSubscriptions.takeOne))
      ),
      ("v1/apps/*/acks", Route(["POST"], .own, .keyed([.ack], Acknowledgements.takeAny))),
      ("v1/apps/*/messages", Route(["POST"], .own, .keyed([.send], Messages.take))),
      (
        "v1/apps/*/messages/*",
        Route(["GET"], .own, .keyed([.send]) { MessageStates.take($0, $1, app: $0.path[2], id: $0.path[4]) })
      ),
    ] + installationTable + FleetOperations.table
  }

  private static func isOfConsole(_ path: [String]) -> Bool {
    ["livez", "readyz", "console"].contains(path.first) || path.starts(with: ["v1", "fleet"])
  }

  private static func probe(_ answer: @escaping @Sendable (HTTPCall) -> HTTPAnswer) -> Route {
    Route(["GET", "HEAD"], .own, .open { $0.answer(answer($0)) })
  }

  /// Answers a token request (RFC 6749 §5.1).
  private static func giveToken(_ call: HTTPCall, _ key: GatewayKey) {
    let token = AccessToken(for: key, at: call.time.wallClock / 1_000)
    call.answer(
      .json(
        200, headers: ["Cache-Control": "no-store"],
        ["access_token": token.text, "expires_in": AccessToken.lifetime, "token_type": "Bearer"]))
  }

  private static func stat(_ call: HTTPCall, _ key: GatewayKey) {
    call.answer(call.context.figures.gorush.answer(of: key, version: call.context.version))
  }

  /// Answers gorush's paths of figures about its own process.
  private static var unsupported: Route {
    Route(
      ["GET"], .gorush,
      .open { call in
        let path = call.path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        call.answer(.gorush(404, "/\(path) of gorush is not supported: the figures are at /metrics of gateway.metrics"))
      })
  }

  private static var installationTable: Route.Table {
    func row(
      _ rest: String, _ methods: [String], right: KeyRight = .register, _ work: @escaping Route.InstallationWork
    ) -> (String, Route) {
      ("v1/apps/*/installations/*" + rest, Route(methods, .own, .installation(right, work)))
    }
    return [
      row("", ["GET", "PUT", "DELETE"]) { call in
        switch call.request.method {
        case "GET": Installations.get(call)
        case "PUT": Installations.put(call)
        default: Installations.delete(call)
        }
      },
      row("/user", ["PUT", "DELETE"]) { call in
        call.request.method == "PUT" ? Installations.putUser(call) : Installations.deleteUser(call)
      },
      row("/secret", ["POST"], Installations.renewSecret), row("/groups/*", ["PUT", "DELETE"], Installations.group),
      row("/topics/*", ["PUT", "DELETE"], Installations.topic),
      row("/badge", ["PUT", "DELETE"], right: .ack) { call in
        call.request.method == "PUT" ? Acknowledgements.badge(call) : Acknowledgements.clearBadge(call)
      },
      row("/acks", ["POST"], right: .ack) { call throws(Fault) in
        try Acknowledgements.take(call, installation: call.installation)
      },
    ]
  }
}
