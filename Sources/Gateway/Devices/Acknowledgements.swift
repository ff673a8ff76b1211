import DeviceRegistry
import PushCore
import StatusHTTP

/// `POST …/acks` and `PUT …/badge`: receipts of devices and their badges. Each is published, and a worker stores it.
enum Acknowledgements {
  /// `DELETE /v1/apps/<app>/installations/<id>/badge`: sets the badge to 0.
  static func clearBadge(_ call: HTTPCall) {
    publish(call, (call.message("badge") + ["badge_option": "reset"]).line)
  }

  /// `PUT /v1/apps/<app>/installations/<id>/badge` with `{"badge": N}`.
  static func badge(_ call: HTTPCall) {
    guard let document = call.object(JSONLimits()) else { return }
    guard let badge = document.value("badge", of: document.root) else {
      return call.refuse("InvalidParameters", "badge: expected {\"badge\": 1 to 1000}")
    }
    publish(call, (call.message("badge") + ["badge": JSONRaw(document.raw(badge))]).line)
  }

  /// By a backend, for any device of its application.
  static func takeAny(_ call: HTTPCall, _ key: GatewayKey) throws(Fault) {
    guard key.apps.contains(call.app) else { throw .foreignApp }
    try take(call, installation: nil)
  }

  /// Accepts one object or an array.
  /// - Parameter installation: nil for any device.
  static func take(_ call: HTTPCall, installation: [UInt8]?) throws(Fault) {
    let document: JSONDocument
    do throws(JSONError) {
      document = try JSONDocument(call.request.body, limits: JSONLimits(bytes: Acknowledgement.mostBytes))
    } catch { return call.refuse("InvalidJSON", error.description) }
    guard document.kind(document.root) == .array else {
      return publish(call, try one(document, document.root, call.app, installation))
    }
    let each = try document.elements(of: document.root).map { element throws(Fault) in
      try one(document, element, call.app, installation)
    }
    publish(call, JSONObjectWriter.array(each))
  }

  /// One acknowledgement with the application and, if known, the installation added.
  private static func one(
    _ document: JSONDocument, _ node: Int, _ app: [UInt8], _ installation: [UInt8]?
  ) throws(Fault) -> [UInt8] {
    guard document.kind(node) == .object else { throw .badRequest("expected an object") }
    var line = JSONObjectWriter()
    line.set("app", app)
    if let installation { line.set("installation", installation) }
    for (name, value) in document.members(of: node) {
      let word = document.text(name)
      switch word {
      case "app":
        guard document.kind(value) == .string, document.string(value) == app else {
          throw .badRequest("app: is given by the path")
        }
      case "installation", "registration", "token":
        guard installation == nil else { throw .badRequest("\(word): the installation is given by the path") }
        line.set(word, raw: document.raw(value))
      case "notification":
        // The push as the device received it: its object `mps` identifies it.
        guard let mps = document.value("mps", of: value) else { throw .badRequest("notification: has no mps") }
        if let key = document.value("pushkey", of: mps) {
          line.set("push_key", raw: document.raw(key))
        } else if let number = document.value("seqno", of: mps) {
          line.set("seqno", raw: document.raw(number))
        } else {
          throw .badRequest("notification: its mps has neither pushkey nor seqno")
        }
      default: line.set(word, raw: document.raw(value))
      }
    }
    return line.closed()
  }

  /// A message id made of idempotency key and body. The same key with another body gives another id.
  static func id(of body: [UInt8], key: [UInt8]) -> [UInt8] {
    UUIDText.named(Digest.sha256(Digest.sha256(key) + Digest.sha256(body)))
  }

  private static func publish(_ call: HTTPCall, _ body: [UInt8]) {
    let id = call.idempotencyKey.map { Self.id(of: body, key: $0) }
    let (app, now) = (call.app, call.time.wallClock)
    let parsed = Acknowledgement.parse(body, size: UInt64(body.count), defaultApp: app, messageID: id, now: now)
    if case .failure(let refusal) = parsed { return call.refuse(refusal.code.rawValue, refusal.reason) }
    call.parts.changes.acknowledge(body, app: app, id: id) { outcome in
      switch outcome {
      case .success: call.answer(.json(202, [:]))
      case .failure(let fault): call.refuse(fault)
      }
    }
  }
}
