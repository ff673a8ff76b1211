import DeviceRegistry
import PushCore

/// A notification of gorush's `POST /api/push`, and its translation into a request of GCM's shape.
struct GorushNotification {
  enum Platform: Int64, CaseIterable {
    case ios = 1
    case android = 2

    var name: String { "\(self)" }
  }

  private(set) var platform = Platform.ios
  /// Tokens, a topic or a condition, as the sender wrote them.
  private(set) var targets: [[UInt8]] = []
  /// An application's package or bundle.
  private(set) var application: [UInt8]?
  private var message: [UInt8] = []
  private var id: [UInt8]?
  /// True if the device shows something.
  private var isShown = false

  /// - Returns: also the request's body, which is still to be validated.
  /// - Throws: a reason that names the field.
  static func read(
    _ document: JSONDocument, _ node: Int, _ key: GatewayKey
  ) throws(Rejection) -> (GorushNotification, body: [UInt8]) {
    var fields = try GorushFields(document, node)
    var notification = GorushNotification()
    guard let number = fields.take("platform").flatMap({ document.integer($0) }),
      let platform = Platform(rawValue: number)
    else { throw Rejection(.invalidParameters, "platform: expected 1 (iOS) or 2 (Android)") }
    notification.platform = platform
    notification.id = try fields.string("notif_id")
    notification.message = try fields.string("message") ?? []
    // The fleet retries by its own rules.
    _ = fields.take("retry")
    var request =
      switch platform {
      case .ios: try notification.readIOS(&fields, key)
      case .android: try notification.readAndroid(&fields)
      }
    if let priority = fields.json("priority") {
      request.append(("priority", priority))
    } else if notification.isShown {
      // Both providers' default for an alert.
      request.append(("priority", "high"))
    }
    try fields.refuseRest()
    return (notification, JSONObject(request).line)
  }

  private typealias Members = [(String, any JSONMember)]

  func log(_ target: [UInt8], _ code: [UInt8]) -> JSONObject {
    [
      "notif_id": JSONOptional(id), "type": "failed-push", "platform": platform.name, "token": target, "message": message,
      "error": platform == .ios ? Self.reason(code) : String(decoding: code, as: UTF8.self),
    ]
  }

  /// APNs' word for a code, as gorush reports it.
  private static func reason(_ code: [UInt8]) -> String {
    switch PushError(rawValue: String(decoding: code, as: UTF8.self)) {
    case .notRegistered: "Unregistered"
    case .invalidRegistration: "BadDeviceToken"
    default: String(decoding: code, as: UTF8.self)
    }
  }

  // MARK: iOS

  private static let headers = [
    ("topic", "apns-topic"), ("apns_id", "apns-id"), ("collapse_id", "apns-collapse-id"), ("push_type", "apns-push-type"),
  ]
  /// Fields of `aps` with their names there.
  private static let aps = [
    ("badge", "badge"), ("category", "category"), ("thread-id", "thread-id"), ("interruption_level", "interruption-level"),
    ("url-args", "url-args"), ("content-state", "content-state"), ("stale-date", "stale-date"),
    ("dismissal-date", "dismissal-date"), ("event", "event"), ("timestamp", "timestamp"),
  ]

  private mutating func readIOS(_ fields: inout GorushFields, _ key: GatewayKey) throws(Rejection) -> Members {
    let document = fields.document
    targets = try fields.tokens()
    for (name, environment) in [("production", DeviceEnvironment.production), ("development", .sandbox)] {
      guard fields.take(name) != nil, key.environment != environment else { continue }
      throw Rejection(
        .invalidParameters, "\(name): this is set by the key (keys create --environment \(environment.name ?? ""))")
    }
    var headers: Members = []
    application = try fields.peek("topic")
    for (name, header) in Self.headers { headers.append((header, JSONOptional(try fields.string(name)))) }
    headers.append(("apns-expiration", JSONOptional(fields.take("expiration").map(document.string))))

    var aps: Members = []
    for (name, key) in Self.aps { aps.append((key, JSONOptional(fields.json(name)))) }
    for (name, key) in [("content_available", "content-available"), ("mutable_content", "mutable-content")] {
      if try fields.flag(name) { aps.append((key, 1)) }
    }
    if let sound = try sound(&fields) { aps.append(("sound", sound)) }
    if let alert = try alert(&fields) { aps.append(("alert", alert)) }
    var payload: Members = [("aps", JSONObject(aps))]
    if let data = try fields.object("data") {
      for (name, value) in document.members(of: data) {
        if document.isString(name, "aps") { throw Rejection(.invalidParameters, "data.aps: is not supported") }
        payload.append((document.text(name), JSONRaw(document.raw(value))))
      }
    }
    return [
      ("registration_ids", targets.map { Array("apns:".utf8) + $0 }),
      ("apns", ["headers": JSONObject(headers), "payload": JSONObject(payload)] as JSONObject),
    ]
  }

  /// `name` and `volume` are those of a critical alert's sound.
  private func sound(_ fields: inout GorushFields) throws(Rejection) -> (any JSONMember)? {
    let (sound, name, volume) = (fields.json("sound"), try fields.string("name"), fields.json("volume"))
    guard name != nil || volume != nil else { return sound }
    return ["critical": 1, "name": name ?? Array("default".utf8), "volume": volume ?? JSONRaw([0x31])] as JSONObject
  }

  private mutating func alert(_ fields: inout GorushFields) throws(Rejection) -> (any JSONMember)? {
    let title = try fields.string("title")
    let members = try fields.members(of: "alert")
    isShown = title != nil || !members.isEmpty || !message.isEmpty
    guard title != nil || !members.isEmpty else { return message.isEmpty ? nil : message }
    let own = [("title", title ?? []), ("body", message)].filter { name, value in
      !value.isEmpty && !members.contains { $0.name == name }
    }
    return JSONObject(own.map { ($0, $1) }) + JSONObject(members.map { ($0.name, JSONRaw(fields.document.raw($0.node))) })
  }

  // MARK: Android

  /// Fields with the same name and meaning in GCM's shape.
  private static let same = [
    "data", "android", "webpush", "apns", "collapse_key", "time_to_live", "restricted_package_name", "dry_run",
    "delay_while_idle", "content_available", "mutable_content",
  ]

  private mutating func readAndroid(_ fields: inout GorushFields) throws(Rejection) -> Members {
    let document = fields.document
    application = try fields.peek("restricted_package_name")
    var request = [try target(&fields)]
    let given = try fields.members(of: "notification")
    let texts = [("title", try fields.string("title")), ("body", message), ("image", try fields.string("image"))].filter {
      $0.1?.isEmpty == false
    }
    let sound = fields.json("sound")
    isShown = !given.isEmpty || !texts.isEmpty || sound != nil
    if isShown {
      let own = JSONObject(texts.map { ($0, $1) } + [("sound", JSONOptional(sound))])
      let names = Set(texts.map(\.0) + (sound == nil ? [] : ["sound"]))
      let others = given.filter { !names.contains($0.name) }.map { ($0.name, JSONRaw(document.raw($0.node))) }
      request.append(("notification", own + JSONObject(others)))
    }
    for name in Self.same { request.append((name, JSONOptional(fields.json(name)))) }
    return request
  }

  /// Sets the targets.
  /// - Returns: the request's member that names them.
  private mutating func target(_ fields: inout GorushFields) throws(Rejection) -> (String, any JSONMember) {
    let topics = Array("/topics/".utf8)
    var topic = try fields.string("topic")
    let condition = try fields.string("condition")
    if let to = try fields.peek("to"), to.starts(with: topics), topic == nil { topic = try fields.string("to") }
    guard topic != nil || condition != nil else {
      targets = try fields.tokens()
      return ("registration_ids", targets.map { Array("fcm:".utf8) + $0 })
    }
    for name in ["tokens", "to"] where fields.take(name) != nil {
      throw Rejection(.invalidParameters, "\(name): not beside \(topic == nil ? "condition" : "topic"), send two notifications")
    }
    guard topic == nil || condition == nil else { throw Rejection(.invalidParameters, "condition: not beside topic") }
    if let name = topic, !name.starts(with: topics) { topic = topics + name }
    targets = [topic ?? condition ?? []]
    return ("to", Array("fcm:".utf8) + targets[0])
  }
}
