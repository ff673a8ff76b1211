import DeviceRegistry
import PushCore
import StatusHTTP

/// `/v1/projects/<id>/registrations/<token>/topicSubscriptions`: the topics of one device, as newer Firebase libraries join and
/// leave them. The topics are those of the registry.
enum TopicSubscriptions {
  // MARK: the collection

  static func takeAll(_ call: HTTPCall, _ key: GatewayKey) {
    device(call, key) { app, record in
      guard call.request.method == "POST" else { return list(call, record) }
      guard let topic = call.query("topic_name"), !topic.isEmpty else {
        return refuse(call, 400, "INVALID_ARGUMENT", "topic_name is missing")
      }
      guard !record.device.topics.contains(topic) else {
        return refuse(call, 409, "ALREADY_EXISTS", "Requested entity already exists.")
      }
      subscribe(call, app, record, topic)
    }
  }

  /// Answers in one page: a device has at most 2,000 topics, which fit the longest page.
  private static func list(_ call: HTTPCall, _ record: DeviceRecord) {
    call.answer(.json(200, ["topicSubscriptions": record.device.topics.map { description(call, $0) }]))
  }

  // MARK: one of it

  static func takeOne(_ call: HTTPCall, _ key: GatewayKey) {
    let topic = call.path[6]
    device(call, key) { app, record in
      let isThere = record.device.topics.contains(topic)
      switch call.request.method {
      case "PATCH" where isThere || mayBeMissing(call): subscribe(call, app, record, topic)
      case "DELETE" where isThere || mayBeMissing(call):
        change(call, app, "unsubscribe", record, topic) { call.answer(.json(200, [:])) }
      case "GET" where isThere: call.answer(.json(200, description(call, topic)))
      default: missing(call)
      }
    }
  }

  private static func subscribe(_ call: HTTPCall, _ app: [UInt8], _ record: DeviceRecord, _ topic: [UInt8]) {
    let isNew = !record.device.topics.contains(topic)
    change(call, app, "subscribe", record, topic) {
      // The registry doesn't store when an existing subscription was made.
      let created: JSONObject = isNew ? ["createTime": Timestamp.text(call.time.wallClock)] : [:]
      call.answer(.json(200, description(call, topic) + created))
    }
  }

  private static func description(_ call: HTTPCall, _ topic: [UInt8]) -> JSONObject {
    let place = [Array("projects".utf8), call.path[2], call.path[3], call.path[4], call.path[5], topic]
    return ["name": Array(place.joined(separator: [UInt8(ascii: "/")])), "topicName": topic]
  }

  // MARK: steps

  /// Finds the device that the path names by token, registration or Firebase installation id, in the project's application.
  private static func device(_ call: HTTPCall, _ key: GatewayKey, then: @escaping ([UInt8], DeviceRecord) -> Void) {
    guard let app = call.applications.app(ofProject: call.path[2], key) else { return call.refuse(.foreignApp) }
    let texts = [call.path[4], Array("fid:".utf8) + call.path[4]].filter { DeviceReference(text: $0) != nil }
    let references = texts.compactMap { DeviceReference(text: $0) }[...]
    find(references, app.id, call) { record in
      if let record { return then(app.id, record) }
      // A text that can be a token or an installation id is an installation id.
      guard joins(call), let text = texts.last else { return missing(call) }
      TokenImport.registerUnknown([text], app, key, for: call) {
        find(references, app.id, call) { record in
          if let record { then(app.id, record) } else { missing(call) }
        }
      }
    }
  }

  /// True if the request subscribes the device even if it is unknown so far.
  private static func joins(_ call: HTTPCall) -> Bool {
    call.request.method == "POST" || call.request.method == "PATCH" && mayBeMissing(call)
  }

  private static func mayBeMissing(_ call: HTTPCall) -> Bool { call.has("allow_missing") }

  private static func find(
    _ references: ArraySlice<DeviceReference>, _ app: [UInt8], _ call: HTTPCall, then: @escaping (DeviceRecord?) -> Void
  ) {
    guard let reference = references.first else { return then(nil) }
    call.ask(.read { try $0.device(reference, app: app) }) { records in
      if let record = records.first, record.state != .gone { return then(record) }
      find(references.dropFirst(), app, call, then: then)
    }
  }

  private static func change(
    _ call: HTTPCall, _ app: [UInt8], _ op: String, _ record: DeviceRecord, _ topic: [UInt8], then: @escaping () -> Void
  ) {
    let change = JSONObject.topicChange(op, app, topic, tokens: [record.registration]).line
    if case .failure(let refusal) = RegistryChange.parse(change, limits: call.parts.changes.limits) {
      return refuse(call, 400, "INVALID_ARGUMENT", refusal.reason)
    }
    call.parts.changes.change(change, app: app, for: call) { answer in
      switch answer.resultErrors?.first.flatMap(\.self) ?? answer.value("error", of: answer.root).map({ answer.text($0) }) {
      case nil: then()
      case "NOT_FOUND"?: missing(call)
      case "TOO_MANY_TOPICS"?: refuse(call, 429, "RESOURCE_EXHAUSTED", "the device has as many topics as it may")
      case let word?: refuse(call, 400, "INVALID_ARGUMENT", word)
      }
    }
  }

  private static func missing(_ call: HTTPCall) { refuse(call, 404, "NOT_FOUND", "Requested entity was not found.") }

  private static func refuse(_ call: HTTPCall, _ status: Int, _ code: String, _ words: String) {
    call.answer(.google(status, code, words))
  }
}
