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
    var line = JSONObjectWriter()
    switch platform {
    case .ios: try notification.readIOS(&fields, &line, key)
    case .android: try notification.readAndroid(&fields, &line)
    }
    if let priority = fields.take("priority") {
      line.set("priority", raw: document.raw(priority))
    } else if notification.isShown {
      // Both providers' default for an alert.
      line.set("priority", "high")
    }
    try fields.refuseRest()
    return (notification, line.closed())
  }

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

  private mutating func readIOS(
    _ fields: inout GorushFields, _ line: inout JSONObjectWriter, _ key: GatewayKey
  ) throws(Rejection) {
    let document = fields.document
    targets = try fields.tokens()
    for (name, environment) in [("production", DeviceEnvironment.production), ("development", .sandbox)] {
      guard fields.take(name) != nil, key.environment != environment else { continue }
      throw Rejection(
        .invalidParameters, "\(name): this is set by the key (keys create --environment \(environment.name ?? ""))")
    }
    var headers = JSONObjectWriter()
    application = try fields.peek("topic")
    for (name, header) in Self.headers { if let value = try fields.string(name) { headers.set(header, value) } }
    if let time = fields.take("expiration") { headers.set("apns-expiration", document.string(time)) }

    var aps = JSONObjectWriter()
    for (name, key) in Self.aps { if let value = fields.take(name) { aps.set(key, raw: document.raw(value)) } }
    for (name, key) in [("content_available", "content-available"), ("mutable_content", "mutable-content")] {
      if try fields.flag(name) { aps.set(key, 1) }
    }
    try setSound(&fields, &aps)
    try setAlert(&fields, &aps)
    var payload = JSONObjectWriter()
    payload.set("aps", raw: aps.closed())
    if let data = try fields.object("data") {
      for (name, value) in document.members(of: data) {
        if document.isString(name, "aps") { throw Rejection(.invalidParameters, "data.aps: is not supported") }
        payload.set(document.text(name), raw: document.raw(value))
      }
    }
    line.set("registration_ids", targets.map { Array("apns:".utf8) + $0 })
    line.set(
      "apns",
      object: {
        $0.set("headers", raw: headers.closed())
        $0.set("payload", raw: payload.closed())
      })
  }

  /// `name` and `volume` are those of a critical alert's sound.
  private func setSound(_ fields: inout GorushFields, _ aps: inout JSONObjectWriter) throws(Rejection) {
    let (sound, name, volume) = (fields.take("sound"), try fields.string("name"), fields.take("volume"))
    if name != nil || volume != nil {
      aps.set(
        "sound",
        object: {
          $0.set("critical", 1)
          $0.set("name", name ?? Array("default".utf8))
          $0.set("volume", raw: volume.map(fields.document.raw) ?? [0x31])
        })
    } else if let sound {
      aps.set("sound", raw: fields.document.raw(sound))
    }
  }

  private mutating func setAlert(_ fields: inout GorushFields, _ aps: inout JSONObjectWriter) throws(Rejection) {
    let title = try fields.string("title")
    let members = try fields.members(of: "alert")
    isShown = title != nil || !members.isEmpty || !message.isEmpty
    guard title != nil || !members.isEmpty else {
      if !message.isEmpty { aps.set("alert", message) }
      return
    }
    aps.set(
      "alert",
      object: { object in
        for (name, value) in [("title", title ?? []), ("body", message)] where !value.isEmpty {
          if !members.contains(where: { $0.name == name }) { object.set(name, value) }
        }
        for (name, node) in members { object.set(name, raw: fields.document.raw(node)) }
      })
  }

  // MARK: Android

  /// Fields with the same name and meaning in GCM's shape.
  private static let same = [
    "data", "android", "webpush", "apns", "collapse_key", "time_to_live", "restricted_package_name", "dry_run",
    "delay_while_idle", "content_available", "mutable_content",
  ]

  private mutating func readAndroid(_ fields: inout GorushFields, _ line: inout JSONObjectWriter) throws(Rejection) {
    let document = fields.document
    application = try fields.peek("restricted_package_name")
    try setTarget(&fields, &line)
    let given = try fields.members(of: "notification")
    let texts = [("title", try fields.string("title")), ("body", message), ("image", try fields.string("image"))].filter {
      $0.1?.isEmpty == false
    }
    let sound = fields.take("sound")
    isShown = !given.isEmpty || !texts.isEmpty || sound != nil
    if isShown {
      let own = Set(texts.map(\.0) + (sound == nil ? [] : ["sound"]))
      line.set(
        "notification",
        object: { object in
          for (name, text) in texts { object.set(name, text) }
          if let sound { object.set("sound", raw: document.raw(sound)) }
          for (name, node) in given where !own.contains(name) { object.set(name, raw: document.raw(node)) }
        })
    }
    for name in Self.same { if let value = fields.take(name) { line.set(name, raw: document.raw(value)) } }
  }

  private mutating func setTarget(_ fields: inout GorushFields, _ line: inout JSONObjectWriter) throws(Rejection) {
    let topics = Array("/topics/".utf8)
    var topic = try fields.string("topic")
    let condition = try fields.string("condition")
    if let to = try fields.peek("to"), to.starts(with: topics), topic == nil { topic = try fields.string("to") }
    guard topic != nil || condition != nil else {
      targets = try fields.tokens()
      line.set("registration_ids", targets.map { Array("fcm:".utf8) + $0 })
      return
    }
    for name in ["tokens", "to"] where fields.take(name) != nil {
      throw Rejection(.invalidParameters, "\(name): not beside \(topic == nil ? "condition" : "topic"), send two notifications")
    }
    guard topic == nil || condition == nil else { throw Rejection(.invalidParameters, "condition: not beside topic") }
    if let name = topic, !name.starts(with: topics) { topic = topics + name }
    targets = [topic ?? condition ?? []]
    line.set("to", Array("fcm:".utf8) + targets[0])
  }
}
