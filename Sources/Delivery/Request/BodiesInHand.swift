/// The bytes of bodies and headers that a shard holds, and for which applications.
///
/// An application's request has room where the application then holds no more than is left free: one alone may take half of the budget,
/// n of them each an n-plus-first part, and there is always some for one that has none. Where only one is configured, all is its own.
/// What has no room leaves by the retry ladder, and counts until the broker has it.
package struct BodiesInHand {
  /// What requests that stay may hold together.
  static let budget = 32 << 20
  /// Held together with what is leaving: above it nothing is read from the broker, until a quarter of it has left. That takes moments
  /// while the broker takes what is published; RabbitMQ closes a connection that takes nothing for 30 seconds.
  static let readingMark = budget * 2

  private(set) var total = 0
  private var leaving = 0
  /// Those of each application, by its index; as long as the last one that had any needs.
  private var byApp: [Int] = []
  /// Moving mean of the bodies that come, in bytes; supposed large before the first has come.
  private var mean = 128 << 10
  private(set) var isReadingPaused = false

  /// Counts a body that has come, for nobody yet.
  /// - Parameter isNew: it was not taken ahead, where it was counted before.
  mutating func add(_ bytes: Int, isNew: Bool = true) {
    addLeaving(bytes)
    if isNew { mean += (bytes - mean) / 16 }
  }

  /// Counts what is published, or taken ahead, until it is removed.
  mutating func addLeaving(_ bytes: Int) {
    total += bytes
    leaving += bytes
  }

  /// The request stays, for `app`; false, and nothing has changed, where there is no room for it.
  /// - Parameter isShared: several applications are configured.
  mutating func keep(_ bytes: Int, for app: Int, isShared: Bool) -> Bool {
    let free = Self.budget - (total - leaving)
    let own = kept(for: app)
    guard isShared ? own + bytes <= free - bytes : bytes <= free else { return false }
    leaving -= bytes
    if app >= byApp.count { byApp += Array(repeating: 0, count: app + 1 - byApp.count) }
    byApp[app] += bytes
    return true
  }

  /// Of the requests of an application that stay.
  func kept(for app: Int) -> Int { app < byApp.count ? byApp[app] : 0 }

  /// - Parameter app: for which it was kept; nil for one that was leaving.
  mutating func remove(_ bytes: Int, keptFor app: Int?) {
    total -= bytes
    if let app { byApp[app] -= bytes } else { leaving -= bytes }
  }

  /// - Returns: true when `isReadingPaused` has changed.
  mutating func adjustReading() -> Bool {
    let pauses = total > (isReadingPaused ? Self.readingMark / 4 * 3 : Self.readingMark)
    guard pauses != isReadingPaused else { return false }
    isReadingPaused = pauses
    return true
  }

  /// How many bodies of the present size fill the budget.
  var fitting: Int { Self.budget / max(mean, 1) }

  /// What deliveries that are taken ahead may take in memory, and what each takes beside its body.
  private static let aheadBudget = 44 << 20
  static let aheadOverhead = 250
  /// How many of the present size that are.
  var fittingAhead: Int { Self.aheadBudget / (max(mean, 0) + Self.aheadOverhead) }
}
