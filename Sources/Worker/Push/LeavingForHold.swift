/// How many requests are on their way to hold queues, and of which applications.
struct LeavingForHold {
  private(set) var count = 0
  private var byApp: [Int: Int] = [:]

  /// Applications that have any.
  var apps: Int { byApp.count }

  func count(of app: Int) -> Int { byApp[app] ?? 0 }

  mutating func add(_ app: Int) {
    count += 1
    byApp[app, default: 0] += 1
  }

  mutating func remove(_ app: Int) {
    count -= 1
    if let rest = byApp[app], rest > 1 { byApp[app] = rest - 1 } else { byApp[app] = nil }
  }
}
