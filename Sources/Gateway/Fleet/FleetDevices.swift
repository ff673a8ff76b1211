import DeviceRegistry
import PushCore
import StatusHTTP

/// `GET /v1/fleet/devices`: the devices of a user, or those of a token, registration or installation, as `pushfleet devices show`
/// finds them, and those that are gone since a time. The answer has no tokens.
enum FleetDevices {
  private static let most = 1_000

  static func find(_ call: HTTPCall, _ key: GatewayKey) {
    guard let app = call.query("app"), key.apps.contains(app) else { return call.refuse(.foreignApp) }
    guard let question = question(call, app) else {
      return call.refuse(
        .badRequest(
          "expected one of user, installation, device (a token or a registration) and gone_since (a time such as 2026-11-20T21:22:00Z)"
        ))
    }
    call.ask(question, orElse: "the registry can't be used for now") { records in
      call.answer(.json(200, ["devices": records.map(Self.description)]))
    }
  }

  private static func question(_ call: HTTPCall, _ app: [UInt8]) -> RegistryCall<[DeviceRecord]>? {
    switch (call.query("user"), call.query("installation"), call.query("device"), call.query("gone_since")) {
    case (let user?, nil, nil, nil): .read { try $0.devices(ofUser: user, app: app, limit: Self.most) }
    case (nil, let installation?, nil, nil): .read { try $0.device(.installation(installation), app: app) }
    case (nil, nil, let text?, nil):
      DeviceReference(text: text).map { reference in .read { try $0.device(reference, app: app) } }
    case (nil, nil, nil, let text?):
      Timestamp.milliseconds(of: text).map { since in
        .read { try $0.devices(app: app, in: .gone, since: since, after: 0, limit: Self.most) }
      }
    default: nil
    }
  }

  private static func description(_ record: DeviceRecord) -> JSONObject {
    let device = record.device
    return [
      "registration": record.registration, "platform": device.platform.word, "kind": (device.kind ?? .alert).name,
      "environment": device.environment?.name, "state": "\(record.state)", "reason": record.reason,
      "state_since": record.markedAt.map(Timestamp.text), "installation": device.installation, "sender": device.sender,
      "user": device.user, "app_version": device.appVersion, "topics": device.topics, "badge": record.badge,
      "registered_at": Timestamp.text(record.registeredAt), "last_seen": Timestamp.text(record.lastSeen),
    ]
  }
}
