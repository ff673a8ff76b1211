import DeviceRegistry
import PushCore
import StatusHTTP

/// `POST /api/push`: gorush's interface, in its synchronous form.
enum GorushPush {
  /// gorush's default of `core.max_notification`.
  private static let most = 100

  private struct Order {
    var notification: GorushNotification
    var app: GatewayApplications.App
    var body: [UInt8]
    var isHigh: Bool
  }

  static func take(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let orders = try read(call, key)
    call.parts.keys.charge(key, requests: orders.count - 1)
    let answers = Gathering<SendService.Outcome>(orders.count) { call.answer(answer(call, orders, $0)) }
    for (index, order) in orders.enumerated() {
      call.parts.send.send(
        SendService.Request(
          app: order.app.id, key: key, body: order.body, isHigh: order.isHigh,
          idempotencyKey: call.idempotencyKey(ofPart: index), traceparent: call.header("traceparent"))
      ) { _, outcome in answers.set(index, outcome) }
    }
  }

  // MARK: the request

  /// Reads all notifications, so that nothing is sent if one of them is refused.
  private static func read(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) -> [Order] {
    let document: JSONDocument
    do throws(JSONError) { document = try JSONDocument(call.request.body, limits: call.applications.limits.json) } catch {
      throw .badRequest(error.description)
    }
    guard let list = document.value("notifications", of: document.root), document.kind(list) == .array else {
      throw .badRequest("Missing notifications field.")
    }
    for (name, _) in document.members(of: document.root) where !document.isString(name, "notifications") {
      throw .badRequest("\(document.pathComponent(name)): is not supported")
    }
    let count = document.count(list)
    guard count > 0 else { throw .badRequest("Notifications field is empty.") }
    guard count <= Self.most else { throw .badRequest("Number of notifications(\(count)) over limit(\(Self.most))") }
    var orders: [Order] = []
    for (index, node) in document.elements(of: list).enumerated() {
      do throws(Rejection) { orders.append(try order(document, node, call, key)) } catch {
        throw .badRequest("notifications[\(index)]: \(error.reason)")
      }
    }
    return orders
  }

  private static func order(
    _ document: JSONDocument, _ node: Int, _ call: HTTPCall, _ key: GatewayKey
  ) throws(Rejection) -> Order {
    let (notification, body) = try GorushNotification.read(document, node, key)
    let name = notification.application.flatMap { call.applications.named($0, of: key) == nil ? nil : $0 }
    guard let app = call.applications.only(of: key, name ?? call.header("project_id")) else {
      throw Rejection(.invalidParameters, "topic: names none of the key's \(key.apps.count) applications")
    }
    let request = try SendRequest(parsing: body, limits: app.limits)
    return Order(notification: notification, app: app, body: body, isHigh: request.isHigh(orElse: app.defaultPriority))
  }

  // MARK: the answer

  private static func answer(_ call: HTTPCall, _ orders: [Order], _ outcomes: [SendService.Outcome]) -> HTTPAnswer {
    if let fault = outcomes.lazy.compactMap(\.fault).first { return ErrorFormat.gorush.answer(fault) }
    let logs = zip(orders, outcomes).flatMap { order, outcome in
      failures(call, order, outcome).map { order.notification.log($0.target, $0.code) }
    }
    let count = orders.reduce(0) { $0 + $1.notification.targets.count }
    return .json(200, ["counts": count, "logs": logs, "success": "ok"])
  }

  /// The failed targets with their codes; counts them all.
  private static func failures(
    _ call: HTTPCall, _ order: Order, _ outcome: SendService.Outcome
  ) -> [(target: [UInt8], code: [UInt8])] {
    var failed: [(target: [UInt8], code: [UInt8])] = []
    let targets = order.notification.targets
    var success = 0
    if case .result(let body) = outcome, let result = WorkerResult(body) {
      // A request that was refused as a whole has one result.
      let isWhole = result.targets.count != targets.count
      for (index, target) in targets.enumerated() {
        switch isWhole ? result.targets.first : result.targets[index] {
        case .failed(let code)?: failed.append((target, code))
        case .accepted?: success += 1
        case nil: continue
        }
      }
    }
    call.context.figures.gorush.count(
      order.app.id, order.notification.platform, total: targets.count, success: success, errors: failed.count)
    return failed
  }
}
