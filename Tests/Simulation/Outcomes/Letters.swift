import PushCore

/// The dead letters of a request: those for one device, and those for the whole request.
struct Letters {
  private(set) var count = 0
  private(set) var ofAll = 0
  private var devices: Set<String> = []

  /// - Parameter tokens: the token of each registration.
  mutating func came(_ body: [UInt8], _ tokens: [String: String]) {
    count += 1
    guard let document = try? JSONDocument(body), let to = document.value("to", of: document.root) else { return ofAll += 1 }
    let target = document.text(to)
    if let token = tokens[target] {
      devices.insert(token)
    } else if let endpoint = PushService.endpoint(ofTarget: target) {
      devices.insert(endpoint)
    } else if target.hasPrefix("apns:") || target.hasPrefix("fcm:") {
      devices.insert(FinalAudit.own(target))
    } else {
      ofAll += 1
    }
  }

  func names(_ token: String) -> Bool { devices.contains(token) }
}
