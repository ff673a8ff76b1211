import DeviceRegistry
import PushCore

extension DeviceRecord {
  private var environment: String? { device.environment?.name }

  var json: JSONObject {
    [
      "registration": registration, "app": device.app, "platform": device.platform.word,
      "token": device.identity,
      "state": state.word,
      "reason": reason, "installation": device.installation, "environment": environment, "sender": device.sender,
      "user": device.user, "name": device.name, "locale": device.locale, "time_zone": device.timeZone,
      "app_version": device.appVersion, "kind": (device.kind ?? .alert).name, "activity": device.activity,
      "topics": device.topics, "registered_at": Timestamp.text(registeredAt), "last_seen": Timestamp.text(lastSeen),
      "state_since": JSONOptional(markedAt.map(Timestamp.text)),
    ]
  }

  var text: String {
    let topics = device.topics.map { String(printing: $0) }.joined(separator: ", ")
    let facts: [(String, String?)] = [
      ("registration", String(printing: registration)), ("app", String(printing: device.app)),
      (
        "state",
        state.word + (reason.map { " (\(String(printing: $0)))" } ?? "")
          + (markedAt.map { " since " + Figures.moment($0) } ?? "")
      ),
      ("platform", device.platform.word + (environment.map { ", \($0)" } ?? "")),
      (device.subscription == nil ? "token" : "subscription", device.shownToken),
      ("kind", device.kind.map { $0.name + (device.activity.map { " of \(String(printing: $0))" } ?? "") }),
      ("installation", device.installation.map { String(printing: $0) }),
      ("sender", device.sender.map { String(printing: $0) }), ("user", device.user.map { String(printing: $0) }),
      ("name", device.name.map { String(printing: $0) }), ("locale", device.locale.map { String(printing: $0) }),
      ("time zone", device.timeZone.map { String(printing: $0) }),
      ("app version", device.appVersion.map { String(printing: $0) }), ("topics", topics.isEmpty ? nil : topics),
      ("registered", Figures.moment(registeredAt)),
      ("last seen", Figures.moment(lastSeen)),
    ]
    return FactList.text(facts)
  }
}

extension DeviceCount {
  var json: JSONObject {
    ["app": app, "platform": platform.word, "kind": kind.name, "state": state.word, "devices": count]
  }
}

extension Registration {
  /// The token for people. An endpoint is a secret, so a subscription has only a name.
  var shownToken: String {
    String(printing: platform == .webpush ? WebPushSubscription.name(of: token[...]) : token)
  }
}

extension DeviceState {
  var word: String { "\(self)" }
}

enum FactList {
  static func text(_ facts: [(String, String?)]) -> String { lines(facts).joined(separator: "\n") }

  static func lines(_ facts: [(String, String?)]) -> [String] {
    let width = facts.map(\.0.count).max() ?? 0
    return facts.compactMap { name, value in value.map { name.padded(to: width + 2) + $0 } }
  }
}
