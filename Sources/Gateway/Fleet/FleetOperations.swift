import Broker
import DeviceRegistry
import PushCore
import StatusHTTP

/// `/v1/fleet/…`: the operations of `pushfleet apps`, `credentials`, `lanes`, `webhooks`, `campaigns` and `audit`. A key sees and controls its applications.
/// The status and the lanes concern all applications, so they need a key for all of them.
enum FleetOperations {
  static var table: Route.Table {
    let kinds: [(String, @Sendable ([UInt8]) -> ControlSubject)] = [
      ("apps", ControlSubject.app), ("lanes", ControlSubject.lane), ("credentials", ControlSubject.credential),
      ("webhooks", ControlSubject.webhook),
    ]
    let controls = kinds.flatMap { name, kind in
      Self.verbs.map { (pattern: "v1/fleet/\(name)/*/\($0)", route: control($0, kind)) }
    }
    let changes = Self.campaignVerbs.map { verb, state in
      (pattern: "v1/fleet/campaigns/*/\(verb)", route: change(to: state))
    }
    // The letters come first: `discard` of an application or a lane concerns their queues.
    return LetterRoutes.table + FleetMessages.table + [
      ("v1/fleet/status", .view(showStatus)), ("v1/fleet/apps", .view(listApps)),
      ("v1/fleet/apps/*/forget", .operate(forget)),
      ("v1/fleet/lanes", .view { call, _ in list(Topology.lanes.map { .lane(Array($0.utf8)) }, as: "lanes", call) }),
      ("v1/fleet/credentials", listPausable("credential")), ("v1/fleet/webhooks", listPausable("webhook")),
      ("v1/fleet/campaigns", .view(listCampaigns)), ("v1/fleet/campaigns/*", .view(showCampaign)),
      ("v1/fleet/campaigns/*/unreached", .view(listUnreached)), ("v1/fleet/audit", .view(listAudit)),
      ("v1/fleet/devices", .view(FleetDevices.find)),
    ] + controls + changes
  }

  private static let verbs = ["pause", "drain", "resume", "rate", "discard"]

  /// An operation, and the members that its body may have besides the reason. Nil if the subject has no such operation.
  /// Requests in queues are discarded by ``LetterRoutes``.
  private static func operation(
    _ verb: String, on subject: ControlSubject
  ) -> (members: [String], action: (OperationBody, _ now: Int64) throws(Fault) -> FleetOperation.Action)? {
    switch (verb, subject) {
    case ("pause", _): (["until"], { body, now throws(Fault) in .pause(subject, until: try body.until(after: now)) })
    case ("resume", _): ([], { _, _ in .resume(subject) })
    case ("drain", .app), ("drain", .lane), ("drain", .credential): ([], { _, _ in .drain(subject) })
    case ("rate", .app): (["rate"], { body, _ throws(Fault) in .rate(subject, try body.rate()) })
    case ("discard", .credential): ([], { _, _ in .discard(subject) })
    default: nil
    }
  }

  private static let campaignVerbs: [String: CampaignState] = ["pause": .paused, "resume": .running, "cancel": .cancelled]

  private static func showStatus(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    guard call.applications.areAll(in: key.apps) else { throw .notAllApps }
    call.context.fleet.ask { call.answer(.json(200, line: $0)) }
  }

  // MARK: applications and lanes

  private static func listApps(_ call: HTTPCall, _ key: GatewayKey) {
    list(key.apps.filter { call.applications[$0] != nil }.map { .app($0) }, as: "apps", call)
  }

  /// - Parameter kind: `credential` or `webhook`.
  private static func listPausable(_ kind: String) -> Route {
    .view { call, key in
      list(key.apps.flatMap { call.applications[$0]?.pausable ?? [] }.filter { $0.kind == kind }, as: kind + "s", call)
    }
  }

  private static func list(_ subjects: [ControlSubject], as name: String, _ call: HTTPCall) {
    ask(.read { try $0.controls() }, call) { controls in
      let now = call.time.wallClock
      var listed = subjects.map { controls.inForce(for: $0, at: now) }
      func answer() {
        call.answer(.json(200, [name: listed.map { $0.namedJSON(at: now) }]))
      }
      guard name == "credentials", listed.contains(where: { $0.mode(at: now) == .paused }) else { return answer() }
      call.context.fleet.askWaiting { waiting in
        for index in listed.indices { listed[index].waiting = waiting[listed[index].subject.name] ?? 0 }
        answer()
      }
    }
  }

  private static func forget(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let app = call.path[3]
    guard call.applications.has(app, of: key) else { throw .foreignApp }
    let body = try OperationBody(call.request.body, with: ["user"])
    perform(.forget(user: try body.user(), app: app), body, call, key)
  }

  private static func control(_ verb: String, _ kind: @escaping @Sendable ([UInt8]) -> ControlSubject) -> Route {
    .operate { call, key throws(Fault) in
      let subject = kind(call.path[3])
      let (isKnown, isAllowed) =
        switch subject {
        case .app(let id): (true, call.applications.has(id, of: key))
        case .lane(let name): (Topology.lanes.contains { $0.utf8.elementsEqual(name) }, call.applications.areAll(in: key.apps))
        case .credential, .webhook:
          (call.applications[subject.app ?? []]?.pausable.contains(subject) == true, key.apps.contains(subject.app ?? []))
        }
      guard isKnown, let operation = Self.operation(verb, on: subject) else { throw .noSuchPlace }
      guard isAllowed else { throw subject.app == nil ? .notAllApps : .foreignApp }
      let body = try OperationBody(call.request.body, with: operation.members)
      perform(try operation.action(body, call.time.wallClock), body, call, key)
    }
  }

  // MARK: campaigns

  private static func listCampaigns(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let limit = try call.number("limit", most: 1_000) ?? 50
    let apps = try apps(call, key)
    ask(.read { try $0.campaigns(of: apps, limit: limit) }, call) { campaigns in
      call.answer(.json(200, ["campaigns": campaigns.map(\.json)]))
    }
  }

  private static func showCampaign(_ call: HTTPCall, _ key: GatewayKey) {
    askOfCampaign(call, key, { try $0.withFailures($1) }) { campaign in call.answer(.json(200, campaign.json)) }
  }

  private static func listUnreached(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let limit = try call.number("limit", most: 1_000) ?? 50
    let after = try call.number("after", most: .max) ?? 0
    askOfCampaign(call, key) { store, campaign in
      try store.unreached(by: campaign.description.id, after: Int64(after), limit: limit)
    } then: { devices in
      call.answer(.json(200, ["devices": devices.map(\.json)]))
    }
  }

  /// Asks about a campaign of one of the key's applications.
  private static func askOfCampaign<Answer: Sendable>(
    _ call: HTTPCall, _ key: GatewayKey, _ question: @escaping @Sendable (DeviceStore, Campaign) throws -> Answer,
    then: @escaping (Answer) -> Void
  ) {
    let read = RegistryCall<Answer?>.read { [id = call.path[3], apps = key.apps] store in
      guard let campaign = try store.campaign(id), apps.contains(campaign.description.app) else { return nil }
      return try question(store, campaign)
    }
    ask(read, call) { answer in
      guard let answer else { return call.refuse(.noSuchPlace) }
      then(answer)
    }
  }

  private static func change(to state: CampaignState) -> Route {
    .operate { call, key throws(Fault) in
      let body = try OperationBody(call.request.body, with: [])
      askOfCampaign(call, key, { _, campaign in campaign.description.id }) { id in
        perform(.campaign(id, state), body, call, key)
      }
    }
  }

  // MARK: the audit

  private static func listAudit(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let limit = try call.number("limit", most: 1_000) ?? 50
    let before = try call.number("before", most: .max) ?? .max
    let given = try apps(call, key)
    // A key for all applications also sees operations on the whole fleet.
    let apps = call.query("app") == nil && call.applications.areAll(in: key.apps) ? nil : given
    let subject = call.query("subject")
    ask(.read { try $0.auditEvents(of: apps, subject: subject, before: Int64(before), limit: limit) }, call) { events in
      call.answer(.json(200, ["events": events.map(\.json)]))
    }
  }

  // MARK: calls

  /// The key's applications, or the one that the query names.
  private static func apps(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) -> [[UInt8]] {
    guard let app = call.query("app") else { return key.apps }
    guard key.apps.contains(app) else { throw .foreignApp }
    return [app]
  }

  /// Answers with the record of the operation.
  private static func perform(_ action: FleetOperation.Action, _ body: OperationBody, _ call: HTTPCall, _ key: GatewayKey) {
    let operation = FleetOperation(action, by: key.title, from: call.origin, because: body.reason)
    ask(.write(.campaigns) { try $0.perform(operation, now: $1) }, call) { result in
      switch result {
      case .success(let event): call.answer(.json(200, event.json))
      case .failure(let refusal): call.refuse("InvalidParameters", refusal.reason, status: 409)
      }
    }
  }

  private static func ask<Answer>(_ question: RegistryCall<Answer>, _ call: HTTPCall, then: @escaping (Answer) -> Void) {
    call.ask(question, orElse: "the registry can't be used for now", then: then)
  }
}
