import DeviceRegistry
import PushCore
import StatusHTTP
import Worker

/// `/iid/…`: what is known of a device, topics joined and left, APNs tokens registered.
struct InstanceID {
  let applications: GatewayApplications
  let changes: ChangeDesk
  let registry: RegistryClient

  /// Tokens of one import, and of one call that joins or leaves.
  private static let (mostImported, mostTogether) = (100, 1_000)

  private func app(_ call: HTTPCall, _ key: GatewayKey) -> [UInt8]? {
    guard let app = applications.only(of: key, call.header("project_id")) else {
      call.answer(Self.error(403, "PERMISSION_DENIED"))
      return nil
    }
    return app.id
  }

  // MARK: GET /iid/info/<token>

  func info(_ call: HTTPCall, _ key: GatewayKey) {
    guard let app = app(call, key) else { return }
    guard let reference = DeviceReference(text: call.path[2]) else { return call.answer(Self.error(400, "InvalidToken")) }
    let isDetailed = call.query("details").map { $0.elementsEqual("true".utf8) } ?? false
    registry.call(.device(reference, app: app)) { result in
      switch result {
      case .success(let records):
        guard let record = records.first, record.state != .gone else {
          return call.answer(Self.error(404, "No information found about this instance id."))
        }
        call.answer(Self.info(record, isDetailed: isDetailed))
      case .failure: call.answer(Manner.instance.answer(.unavailable("the registry can't be read for now")))
      }
    }
  }

  private static func info(_ record: DeviceRecord, isDetailed: Bool) -> HTTPAnswer {
    let device = record.device
    // Days on which topics were joined are not kept: the device's own stands for them.
    let day = Array(Timestamp.text(record.registeredAt).prefix(10))
    return .json(200) { body in
      body.set("application", device.app)
      body.set("authorizedEntity", device.sender ?? device.app)
      body.set("platform", device.platform == .apns ? "IOS" : "ANDROID")
      if let version = device.appVersion { body.set("applicationVersion", version) }
      body.set("scope", "*")
      guard isDetailed else { return }
      body.set(
        "rel",
        object: { rel in
          rel.set(
            "topics",
            object: { topics in
              for topic in device.topics {
                topics.set(String(decoding: topic, as: UTF8.self), object: { $0.set("addDate", day) })
              }
            })
        })
    }
  }

  // MARK: POST /iid/v1/<token>/rel/topics/<name>

  func join(_ call: HTTPCall, _ key: GatewayKey) {
    guard let app = app(call, key) else { return }
    subscribe(call, app, "subscribe", topic: call.path[5], tokens: [call.path[2]]) { errors in
      switch errors.first.flatMap(\.self) {
      case nil: call.answer(.json(200) { _ in })
      case "NOT_FOUND"?: call.answer(Self.error(404, "No information found about this instance id."))
      case let error?: call.answer(Self.error(400, error))
      }
    }
  }

  // MARK: POST /iid/v1:batchAdd and :batchRemove

  func batchAdd(_ call: HTTPCall, _ key: GatewayKey) { batch(call, key, "subscribe") }
  func batchRemove(_ call: HTTPCall, _ key: GatewayKey) { batch(call, key, "unsubscribe") }

  private func batch(_ call: HTTPCall, _ key: GatewayKey, _ op: String) {
    guard let app = app(call, key) else { return }
    guard let document = try? JSONDocument(call.request.body), let topic = document.text(of: "to") else {
      return call.answer(Self.error(400, "InvalidParameters"))
    }
    let node = document.value("registration_tokens", of: document.root).flatMap { document.kind($0) == .null ? nil : $0 }
    guard let node else { return call.answer(Self.error(400, "MissingIIdToken")) }
    guard let tokens = document.texts(of: node) else {
      return call.answer(Self.error(400, "registration_tokens: expected an array of strings"))
    }
    guard !tokens.isEmpty else { return call.answer(Self.error(400, "MissingIIdToken")) }
    guard tokens.count <= Self.mostTogether else {
      return call.answer(Self.error(400, "registration_tokens: \(tokens.count) tokens, at most \(Self.mostTogether) allowed"))
    }
    subscribe(call, app, op, topic: topic, tokens: tokens) { errors in
      call.answer(
        .json(200) {
          $0.set("results", objects: errors.map { error in { if let error { $0.set("error", error) } } })
        })
    }
  }

  private func subscribe(
    _ call: HTTPCall, _ app: [UInt8], _ op: String, topic: [UInt8], tokens: [[UInt8]], then: @escaping ([String?]) -> Void
  ) {
    var line = JSONObjectWriter()
    line.set("op", op)
    line.set("app", app)
    line.set("topic", topic)
    line.set("tokens", tokens)
    let change = line.closed()
    if case .failure(let refusal) = RegistryChange.parse(change, limits: changes.limits) {
      let isTopic = refusal.reason.hasPrefix("topic")
      return call.answer(Self.error(400, isTopic ? "Topic name format is invalid" : refusal.reason))
    }
    changes.change(change, app: app) { outcome in
      guard let answer = Self.answer(outcome, call) else { return }
      guard let results = answer.value("results", of: answer.root) else {
        return call.answer(Self.error(400, answer.text(of: "error").map { String(decoding: $0, as: UTF8.self) } ?? "INTERNAL"))
      }
      then(
        answer.elements(of: results).map { result in
          answer.value("error", of: result).map { answer.text($0) }
        })
    }
  }

  /// Nil where the call has been answered.
  private static func answer(_ outcome: ChangeDesk.Outcome, _ call: HTTPCall) -> JSONDocument? {
    switch outcome {
    case .answered(let document): return document
    case .accepted: call.answer(Manner.instance.answer(.unavailable("it is accepted, and not done yet")))
    case .refused(let reason), .unknown(let reason): call.answer(Manner.instance.answer(.unavailable(reason)))
    }
    return nil
  }

  // MARK: POST /iid/v1:batchImport

  func batchImport(_ call: HTTPCall, _ key: GatewayKey) {
    guard let document = try? JSONDocument(call.request.body), let name = document.text(of: "application"),
      let node = document.value("apns_tokens", of: document.root), let tokens = document.texts(of: node),
      (1...Self.mostImported).contains(tokens.count)
    else { return call.answer(Self.error(400, "InvalidParameters")) }
    guard let app = applications.named(name, of: key) else { return call.answer(Self.error(403, "PERMISSION_DENIED")) }
    let isSandbox = document.value("sandbox", of: document.root).flatMap(document.bool) ?? false
    let round = ImportRound(tokens) { result in
      switch result {
      case .success(let items):
        call.answer(.json(200) { $0.set("results", objects: items.map { item in { item.write(to: &$0) } }) })
      case .failure(let unsettled): call.answer(Manner.instance.answer(.unavailable(unsettled.reason)))
      }
    }
    for (index, token) in tokens.enumerated() {
      var line = JSONObjectWriter()
      line.set("op", "register")
      line.set("app", app.id)
      line.set("platform", "apns")
      line.set("token", token)
      line.set("environment", isSandbox ? "sandbox" : "production")
      let change = line.closed()
      if case .failure = RegistryChange.parse(change, limits: changes.limits) {
        round.end(index, nil)
        continue
      }
      changes.change(change, app: app.id) { outcome in
        switch outcome {
        case .answered(let answer): round.end(index, answer.text(of: "registration"))
        case .accepted: round.leave("it is accepted, and not done yet")
        case .refused(let reason), .unknown(let reason): round.leave(reason)
        }
      }
    }
  }

  private static func error(_ status: Int, _ word: String) -> HTTPAnswer { .json(status) { $0.set("error", word) } }
}

/// The tokens of one import, until each has its answer. Where nobody knows what became of one, the whole may come again: to register twice
/// is to register once.
private final class ImportRound {
  struct Unsettled: Error {
    let reason: String
  }

  struct Item {
    let token: [UInt8]
    var registration: [UInt8]?

    func write(to object: inout JSONObjectWriter) {
      object.set("apns_token", token)
      object.set("status", registration == nil ? "Internal Server Error" : "OK")
      if let registration { object.set("registration_token", registration) }
    }
  }

  private var items: [Item]
  private var open: Int
  private var unsettled: Unsettled?
  private let then: (Result<[Item], Unsettled>) -> Void

  init(_ tokens: [[UInt8]], then: @escaping (Result<[Item], Unsettled>) -> Void) {
    items = tokens.map { Item(token: $0) }
    open = tokens.count
    self.then = then
  }

  func end(_ index: Int, _ registration: [UInt8]?) {
    items[index].registration = registration
    endOne()
  }

  func leave(_ reason: String) {
    unsettled = Unsettled(reason: reason)
    endOne()
  }

  private func endOne() {
    open -= 1
    if open == 0 { then(unsettled.map { .failure($0) } ?? .success(items)) }
  }
}
