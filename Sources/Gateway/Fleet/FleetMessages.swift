import DeviceRegistry
import PushCore
import Settings
import StatusHTTP

/// `/v1/fleet/apps/<app>/explain`, `…/test`, `…/messages/<id>` and `…/trace`: a request as an operator tries it, and what became of it.
enum FleetMessages {
  /// Seconds that a test waits for its result, if the call names no other time. The console waits for an answer for ten.
  private static let usualWait = 5

  static var table: Route.Table {
    [
      ("v1/fleet/apps/*/explain", Route(["POST"], .own, .console(ConsoleRoutes.rights, show))),
      ("v1/fleet/apps/*/test", .operate(send)), ("v1/fleet/apps/*/trace", .view(trace)),
      ("v1/fleet/apps/*/messages/*", .view { MessageStates.take($0, $1, app: $0.path[3], id: $0.path[5]) }),
    ]
  }

  private static func trace(_ call: HTTPCall, _ key: GatewayKey) {
    let app = call.path[3]
    guard call.applications.has(app, of: key) else { return call.refuse(.foreignApp) }
    call.parts.traces.take(call, app: app)
  }

  private static func show(_ call: HTTPCall, _ key: GatewayKey) {
    let app = call.path[3]
    guard call.applications.has(app, of: key) else { return call.refuse(.foreignApp) }
    let explained = call.context.explain(call.parts.configuration, String(decoding: app, as: UTF8.self), call.request.body)
    if explained.isRefused { return call.answer(.json(400, line: explained.json)) }
    call.answer(.json(200, ["platforms": JSONRaw(explained.json)]))
  }

  /// Sends a request to a single device, user or group. The audit has the event before the answer, if the broker has the request.
  private static func send(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let app = call.path[3]
    guard key.apps.contains(app), let known = call.applications[app] else { throw .foreignApp }
    var order = try Messages.order(call, key, known)
    if call.query("wait") == nil { order.request.wait = min(call.parts.send.wait, Self.usualWait) }
    let kind: String
    do throws(Rejection) {
      kind = try Self.kindOfTarget(try SendRequest(parsing: call.request.body, limits: known.limits))
    } catch { return call.answer(.own(400, error.code.rawValue, error.reason)) }
    let operation = FleetOperation(.test(app: app, target: kind), by: key.title, from: call.origin)
    let record = RegistryCall.write(.campaigns) { try $0.perform(operation, now: $1) }
    var wasPublished = false
    order.request.published = { wasPublished = true }
    Messages.send(call, call.request.body, order) { _, answer in
      guard wasPublished else { return call.answer(answer) }
      call.ask(record, orElse: "the test was published, but the registry can't record it now") { _ in call.answer(answer) }
    }
  }

  /// - Throws: for a request to several devices, except those of a user or group.
  private static func kindOfTarget(_ request: SendRequest) throws(Rejection) -> String {
    switch request.targets.named.count == 1 ? request.targets.named.first : nil {
    case .apns?, .fcm?, .webpush?: return "token"
    case .registration?: return "registration"
    case .user?: return "user"
    case .group?: return "group"
    case .invalid(let rejection)?: throw rejection
    case .fcmTopics?, .channel?, .topic?, .all?, nil:
      throw Rejection(.invalidParameters, "to: a test goes to one token, registration, user or group")
    }
  }
}
