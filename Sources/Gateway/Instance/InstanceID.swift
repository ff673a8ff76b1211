import DeviceRegistry
import PushCore
import StatusHTTP

/// `/iid/…`: reads a device, joins and leaves topics, registers APNs tokens.
enum InstanceID {
  /// Most tokens of one import, and of one call that joins or leaves.
  private static let (mostImported, mostTogether) = (100, 1_000)

  private static func app(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) -> GatewayApplications.App {
    guard let app = call.applications.only(of: key, call.header("project_id")) else { throw .foreignApp }
    return app
  }

  // MARK: GET /iid/info/<token>

  static func info(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let app = try app(call, key)
    guard let reference = DeviceReference(text: call.path[2]) else { return call.answer(.instance(400, "InvalidToken")) }
    let isDetailed = call.has("details")
    call.ask(.read { try $0.device(reference, app: app.id) }) { records in
      guard let record = records.first, record.state != .gone else {
        return call.answer(.instance(404, "No information found about this instance id."))
      }
      call.answer(Self.info(record, isDetailed: isDetailed))
    }
  }

  private static func info(_ record: DeviceRecord, isDetailed: Bool) -> HTTPAnswer {
    let device = record.device
    // The registry has no dates of subscriptions, so the date of the registration is used.
    let day = Array(Timestamp.text(record.registeredAt).prefix(10))
    let topics = JSONObject(device.topics.map { (String(decoding: $0, as: UTF8.self), ["addDate": day] as JSONObject) })
    return .json(
      200,
      [
        "application": device.app, "authorizedEntity": device.sender ?? device.app, "platform": name(of: device.platform),
        "applicationVersion": JSONOptional(device.appVersion), "scope": "*",
        "rel": JSONOptional(isDetailed ? ["topics": topics] as JSONObject : nil),
      ])
  }

  private static func name(of platform: Platform) -> String {
    switch platform {
    case .apns: "IOS"
    case .fcm: "ANDROID"
    case .webpush: "CHROME"
    }
  }

  // MARK: POST /iid/v1/<token>/rel/topics/<name>

  static func join(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    let app = try app(call, key)
    subscribe(call, app, key, "subscribe", topic: call.path[5], tokens: [call.path[2]]) { errors in
      switch errors.first.flatMap(\.self) {
      case nil: call.answer(.json(200, [:]))
      case "NOT_FOUND"?: call.answer(.instance(404, "No information found about this instance id."))
      case let error?: call.answer(.instance(400, error))
      }
    }
  }

  // MARK: POST /iid/v1:batchAdd and :batchRemove

  static func batchAdd(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) { try batch(call, key, "subscribe") }
  static func batchRemove(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) { try batch(call, key, "unsubscribe") }

  private static func batch(_ call: HTTPCall, _ key: GatewayKey, _ op: String) throws(Fault) {
    let app = try app(call, key)
    guard let document = try? JSONDocument(call.request.body), let topic = document.string("to") else {
      return call.answer(.instance(400, "InvalidParameters"))
    }
    guard let node = document.given("registration_tokens") else { return call.answer(.instance(400, "MissingIIdToken")) }
    guard let tokens = document.texts(of: node) else {
      return call.answer(.instance(400, "registration_tokens: expected an array of strings"))
    }
    guard !tokens.isEmpty else { return call.answer(.instance(400, "MissingIIdToken")) }
    guard tokens.count <= Self.mostTogether else {
      return call.answer(.instance(400, "registration_tokens: \(tokens.count) tokens, at most \(Self.mostTogether) allowed"))
    }
    subscribe(call, app, key, op, topic: topic, tokens: tokens) { errors in
      call.answer(.json(200, ["results": errors.map { ["error": JSONOptional($0)] as JSONObject }]))
    }
  }

  private static func subscribe(
    _ call: HTTPCall, _ app: GatewayApplications.App, _ key: GatewayKey, _ op: String, topic: [UInt8], tokens: [[UInt8]],
    then: @escaping ([String?]) -> Void
  ) {
    let change = JSONObject.topicChange(op, app.id, topic, tokens: tokens).line
    if case .failure(let refusal) = RegistryChange.parse(change, limits: call.parts.changes.limits) {
      let isTopic = refusal.reason.hasPrefix("topic")
      return call.answer(.instance(400, isTopic ? "Topic name format is invalid" : refusal.reason))
    }
    TokenImport.registerUnknown(op == "subscribe" ? tokens : [], app, key, for: call) {
      apply(call, change, app.id, then: then)
    }
  }

  private static func apply(_ call: HTTPCall, _ change: [UInt8], _ app: [UInt8], then: @escaping ([String?]) -> Void) {
    call.parts.changes.change(change, app: app, for: call) { answer in
      guard let errors = answer.resultErrors else {
        return call.answer(.instance(400, answer.string("error").map { String(decoding: $0, as: UTF8.self) } ?? "INTERNAL"))
      }
      then(errors)
    }
  }

  // MARK: POST /iid/v1:batchImport

  static func batchImport(_ call: HTTPCall, _ key: GatewayKey) {
    guard let document = try? JSONDocument(call.request.body), let name = document.string("application"),
      let node = document.value("apns_tokens", of: document.root), let tokens = document.texts(of: node),
      (1...Self.mostImported).contains(tokens.count),
      let isSandbox = document.value("sandbox", of: document.root)
        .map({ document.kind($0) == .null ? false : document.bool($0) }) ?? false
    else { return call.answer(.instance(400, "InvalidParameters")) }
    guard let app = call.applications.named(name, of: key) else { return call.answer(.instance(403, "PERMISSION_DENIED")) }
    TokenImport.register(
      tokens.map { (.apns, $0) }, app.id, environment: isSandbox ? .sandbox : .production, sender: key.sender, for: call
    ) { result in
      switch result {
      case .success(let registrations):
        let items = zip(tokens, registrations).map { token, registration -> JSONObject in
          [
            "apns_token": token, "status": registration == nil ? "Internal Server Error" : "OK",
            "registration_token": JSONOptional(registration),
          ]
        }
        call.answer(.json(200, ["results": items]))
      case .failure(let fault): call.refuse(fault)
      }
    }
  }
}
