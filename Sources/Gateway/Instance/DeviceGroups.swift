import DeviceRegistry
import PushCore
import StatusHTTP

/// `/gcm/notification` and `/fcm/notification`: POST creates and changes device groups, GET looks up their keys.
enum DeviceGroups {
  static func take(_ call: HTTPCall, _ key: GatewayKey) {
    guard let app = call.applications.only(of: key, call.header("project_id")) else {
      return call.answer(.instance(400, "project_id: the key is for several applications, name one"))
    }
    if call.request.method == "GET" { look(call, app.id) } else { change(call, app, key) }
  }

  private static func look(_ call: HTTPCall, _ app: [UInt8]) {
    guard let name = call.query("notification_key_name"), !name.isEmpty else {
      return call.answer(.instance(400, "notification_key_name: missing"))
    }
    call.ask(.read { try $0.group(.name(name), app: app) }) { group in
      guard let group else { return call.answer(.instance(400, "notification_key not found")) }
      call.answer(.json(200, ["notification_key": group.notificationKey]))
    }
  }

  private static func change(_ call: HTTPCall, _ app: GatewayApplications.App, _ key: GatewayKey) {
    guard let document = try? JSONDocument(call.request.body), document.kind(document.root) == .object else {
      return call.answer(.instance(400, "InvalidJson"))
    }
    let operations = ["create": "group_create", "add": "group_add", "remove": "group_remove"]
    guard let word = document.string("operation"), let op = operations[String(decoding: word, as: UTF8.self)] else {
      return call.answer(.instance(400, "operation: expected create, add or remove"))
    }
    let names = ["notification_key_name", "notification_key", "registration_ids", "users"]
      .filter { $0 != "notification_key" || op != "group_create" }
    let given = names.map { name in (name, JSONOptional(document.given(name).map { JSONRaw(document.raw($0)) })) }
    let change = (["op": op, "app": app.id] + JSONObject(given)).line
    if case .failure(let refusal) = RegistryChange.parse(change, limits: call.parts.changes.limits) {
      return call.answer(.instance(400, refusal.reason))
    }
    let named = op == "group_remove" ? nil : document.value("registration_ids", of: document.root).flatMap(document.texts)
    TokenImport.registerUnknown(named ?? [], app, key, for: call) { apply(call, change, app.id) }
  }

  private static func apply(_ call: HTTPCall, _ change: [UInt8], _ app: [UInt8]) {
    call.parts.changes.change(change, app: app, for: call) { answer in
      if let error = answer.string("error") {
        return call.answer(.instance(400, String(decoding: error, as: UTF8.self)))
      }
      call.answer(.json(200, ["notification_key": answer.string("notification_key") ?? []]))
    }
  }
}
