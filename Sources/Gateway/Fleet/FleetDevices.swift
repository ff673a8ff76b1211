import DeviceRegistry
import PushCore
import StatusHTTP

/// `GET /v1/fleet/devices`: the devices of a user, or those of a token, registration or installation, as `pushfleet devices show`
/// finds them, and those that are gone since a time. The answer has no tokens.
struct FleetDevices {
  let registry: RegistryClient

  private static let most = 1_000

  func find(_ call: HTTPCall, _ key: GatewayKey) {
    guard let app = call.query("app"), key.apps.contains(app) else { return call.answer(ErrorFormat.own.answer(.foreignApp)) }
    guard let question = question(call, app) else {
      return call.answer(
        ErrorFormat.own.answer(
          .badRequest(
            "expected one of user, installation, device (a token or a registration) and gone_since (a time such as 2026-11-20T21:22:00Z)"
          )))
    }
    registry.call(question) { result in
      guard case .success(let records) = result else {
        return call.answer(ErrorFormat.own.answer(.unavailable("the registry can't be used for now")))
      }
      call.answer(.json(200) { $0.set("devices", objects: records.map { record in { Self.write(record, to: &$0) } }) })
    }
  }

  private func question(_ call: HTTPCall, _ app: [UInt8]) -> RegistryCall<[DeviceRecord]>? {
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

  private static func write(_ record: DeviceRecord, to object: inout JSONObjectWriter) {
    let device = record.device
    object.set("registration", record.registration)
    object.set("platform", device.platform.word)
    object.set("kind", (device.kind ?? .alert).name)
    object.set("environment", device.environment?.name.map { Array($0.utf8) })
    object.set("state", "\(record.state)")
    object.set("reason", record.reason)
    object.set("state_since", time: record.markedAt)
    object.set("installation", device.installation)
    object.set("sender", device.sender)
    object.set("user", device.user)
    object.set("app_version", device.appVersion)
    object.set(Array("topics".utf8), device.topics)
    object.set("badge", record.badge)
    object.set("registered_at", time: record.registeredAt)
    object.set("last_seen", time: record.lastSeen)
  }
}
