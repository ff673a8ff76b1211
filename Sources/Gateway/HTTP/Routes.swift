import DeviceRegistry
import PushCore
import Settings
import StatusHTTP

/// Who answers requests for a place.
struct Route {
  enum Work {
    /// For everybody.
    case open((HTTPCall) -> Void)
    /// For whoever has a key with one of the rights.
    case keyed(Set<KeyRight>, (HTTPCall, GatewayKey) -> Void)
    /// For the installation that the path names, by its secret, and for whoever has a key to its application with the right.
    case installation(KeyRight, (HTTPCall, Visitor) -> Void)
    /// For whoever signs for a service account.
    case account((HTTPCall, GatewayKey) -> Void)
  }

  var methods: [String]
  var manner: Manner
  var work: Work
}

/// The places of the HTTP door (docs/openapi.yaml).
final class Routes {
  private let context: GatewayContext
  private let send: GCMSend
  private let v1: V1Send
  private let groups: DeviceGroups
  private let instances: InstanceID
  private let installations: Installations
  private let subscriptions: TopicSubscriptions
  private let acknowledgements: Acknowledgements
  private let pages: ContentPages

  /// What lives on when the applications change.
  struct Desks {
    let send: SendDesk
    let changes: ChangeDesk

    init(_ context: GatewayContext, _ settings: GatewayHTTPSettings) {
      send = SendDesk(
        context, wait: settings.wait, retransmission: settings.retransmission, sharesAll: settings.isShared)
      changes = ChangeDesk(context, wait: settings.wait)
    }
  }

  init(_ context: GatewayContext, _ registry: RegistryClient, _ desks: Desks, _ applications: GatewayApplications) {
    self.context = context
    let (desk, changes) = (desks.send, desks.changes)
    send = GCMSend(applications: applications, desk: desk)
    v1 = V1Send(applications: applications, desk: desk)
    let http = context.configuration.gateway?.http
    let imports = TokenImport(changes: changes, registry: registry, takesUnknown: http?.registersUnknown ?? true)
    groups = DeviceGroups(applications: applications, changes: changes, registry: registry, imports: imports)
    instances = InstanceID(applications: applications, changes: changes, registry: registry, imports: imports)
    installations = Installations(
      applications: applications, changes: changes, registry: registry,
      takesUsersOfDevices: http?.deviceUsers ?? true)
    pages = ContentPages(registry: registry)
    subscriptions = TopicSubscriptions(
      applications: applications, changes: changes, registry: registry, imports: imports
    ) { [context] in context.loop.wallClock }
    acknowledgements = Acknowledgements(changes: changes) { [context] in context.loop.wallClock }
  }

  /// What paths say by themselves; everything else in them is an application's or a device's.
  static let words: Set = [
    "livez", "readyz", "token", "pages", "gcm", "fcm", "send", "notification", "iid", "info", "v1", "rel", "topics",
    "v1:batchAdd",
    "v1:batchRemove", "v1:batchImport", "projects", "messages:send", "registrations", "topicSubscriptions", "apps",
    "installations", "user", "secret", "groups", "badge", "acks",
  ]

  /// A sender makes groups and topics as well, as with Google, of tokens that it has.
  private static let senders: Set<KeyRight> = [.send, .register]

  /// Nil where there is nothing.
  func route(_ call: HTTPCall) -> Route? {
    let path = call.path.map { String(decoding: $0, as: UTF8.self) }
    switch (path.first, path.count) {
    case ("livez", 1): return probe { .text(200, "alive\n") }
    case ("readyz", 1):
      return probe { [context] in context.readiness }
    case ("token", 1): return Route(methods: ["POST"], manner: .oauth, work: .account(giveToken))
    case ("pages", 2): return Route(methods: ["GET", "HEAD"], manner: .own, work: .open(pages.take))
    case ("gcm", 2), ("fcm", 2): return legacy(path[1])
    case ("iid", _): return instance(path)
    case ("v1", 4) where path[1] == "projects" && path[3] == "messages:send":
      return Route(methods: ["POST"], manner: .google, work: .keyed([.send], v1.take))
    case ("v1", 6) where Self.isOfSubscriptions(path):
      return Route(methods: ["GET", "POST"], manner: .google, work: .keyed(Self.senders, subscriptions.takeAll))
    case ("v1", 7) where Self.isOfSubscriptions(path):
      return Route(methods: ["GET", "DELETE", "PATCH"], manner: .google, work: .keyed(Self.senders, subscriptions.takeOne))
    case ("v1", 4) where path[1] == "apps" && path[3] == "acks": return Route(methods: ["POST"], manner: .own, work: acks)
    case ("v1", 5...7) where path[1] == "apps" && path[3] == "installations": return installation(path)
    default: return nil
    }
  }

  private static func isOfSubscriptions(_ path: [String]) -> Bool {
    path[1] == "projects" && path[3] == "registrations" && path[5] == "topicSubscriptions"
  }

  private func probe(_ answer: @escaping () -> HTTPAnswer) -> Route {
    Route(methods: ["GET", "HEAD"], manner: .own, work: .open { $0.answer(answer()) })
  }

  /// RFC 6749 §5.1.
  private func giveToken(_ call: HTTPCall, _ key: GatewayKey) {
    let token = AccessToken(for: key, at: context.loop.wallClock / 1_000)
    call.answer(
      .json(200, headers: ["Cache-Control": "no-store"]) {
        $0.set("access_token", token.text)
        $0.set("expires_in", AccessToken.lifetime)
        $0.set("token_type", "Bearer")
      })
  }

  private func legacy(_ place: String) -> Route? {
    switch place {
    case "send": Route(methods: ["POST"], manner: .legacy, work: .keyed([.send], send.take))
    case "notification": Route(methods: ["GET", "POST"], manner: .instance, work: .keyed(Self.senders, groups.take))
    default: nil
    }
  }

  private func instance(_ path: [String]) -> Route? {
    let work: (HTTPCall, GatewayKey) -> Void
    var rights = Self.senders
    switch (path.count, path.dropFirst().first) {
    case (3, "info"): return Route(methods: ["GET"], manner: .instance, work: .keyed([.register], instances.info))
    case (2, "v1:batchAdd"): work = instances.batchAdd
    case (2, "v1:batchRemove"): work = instances.batchRemove
    case (2, "v1:batchImport"): (work, rights) = (instances.batchImport, [.register])
    case (6, "v1") where path[3] == "rel" && path[4] == "topics": work = instances.join
    default: return nil
    }
    return Route(methods: ["POST"], manner: .instance, work: .keyed(rights, work))
  }

  private func installation(_ path: [String]) -> Route? {
    func route(_ methods: [String], _ work: @escaping (HTTPCall, Visitor) -> Void) -> Route {
      Route(methods: methods, manner: .own, work: .installation(.register, work))
    }
    guard path.count > 5 else {
      return route(["GET", "PUT", "DELETE"]) { [installations] call, visitor in
        switch call.request.method {
        case "GET": installations.get(call, visitor)
        case "PUT": installations.put(call, visitor)
        default: installations.delete(call, visitor)
        }
      }
    }
    switch (path[5], path.count) {
    case ("user", 6):
      return route(["PUT", "DELETE"]) { [installations] call, visitor in
        call.request.method == "PUT" ? installations.putUser(call, visitor) : installations.deleteUser(call, visitor)
      }
    case ("secret", 6): return route(["POST"], installations.renewSecret)
    case ("groups", 7): return route(["PUT", "DELETE"], installations.group)
    case ("topics", 7): return route(["PUT", "DELETE"], installations.topic)
    case ("badge", 6):
      return Route(
        methods: ["PUT", "DELETE"], manner: .own,
        work: .installation(.ack) { [acknowledgements] call, visitor in
          call.request.method == "PUT" ? acknowledgements.badge(call, visitor) : acknowledgements.clearBadge(call, visitor)
        })
    case ("acks", 6):
      return Route(
        methods: ["POST"], manner: .own,
        work: .installation(.ack) { [acknowledgements] call, visitor in
          acknowledgements.take(call, visitor.app, installation: visitor.installation)
        })
    default: return nil
    }
  }

  /// Of a backend, for any device of its application.
  private var acks: Route.Work {
    .keyed([.ack]) { [acknowledgements] call, key in
      guard key.apps.contains(call.path[2]) else { return call.answer(Manner.own.answer(.notAllowed)) }
      acknowledgements.take(call, call.path[2], installation: nil)
    }
  }
}
