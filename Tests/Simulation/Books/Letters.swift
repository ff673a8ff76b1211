import PushCore

/// The dead letters of a request: those that name one device, and those that stand for all that it was to reach.
struct Letters {
  private(set) var count = 0
  private(set) var ofAll = 0
  private var devices: Set<String> = []

  /// - Parameter tokens: whose a registration is.
  mutating func came(_ body: [UInt8], _ tokens: [String: String]) {
    count += 1
    guard let document = try? JSONDocument(body), let to = document.value("to", of: document.root) else { return ofAll += 1 }
    let target = document.text(to)
    if let token = tokens[target] {
      devices.insert(token)
    } else if target.hasPrefix("apns:") || target.hasPrefix("fcm:") {
      devices.insert(FinalAudit.own(target))
    } else {
      ofAll += 1
    }
  }

  func names(_ token: String) -> Bool { devices.contains(token) }
}
