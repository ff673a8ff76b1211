/// Counts the bytes of bodies and headers in a shard, by application. A request is kept only if its application then has at
/// most as much as remains free. So one application may use half of the budget, and n applications 1/(n+1) each; some is always
/// left for another one. A single configured application may use all of it. A request without room goes to the retry ladder,
/// and counts until the broker has confirmed it.
package struct BodiesInHand {
  /// The limit in bytes for all kept requests.
  static let budget = 32 << 20
  /// The limit in bytes with publications. Above it reading from the broker stops, until a quarter is confirmed. That takes
  /// moments, unless the broker blocks publishing. RabbitMQ closes a connection that isn't read for 30 seconds.
  static let readingMark = budget * 2

  private(set) var total = 0
  private var leaving = 0
  /// By the application's index; grows with the highest index that had any.
  private var byApp: [Int] = []
  /// Moving average of the bodies' sizes in bytes, large at first.
  private var mean = 128 << 10
  private(set) var isReadingPaused = false

  /// Counts the body of a delivery that isn't kept yet.
  /// - Parameter isNew: false if the delivery was read ahead and counted before.
  mutating func add(_ bytes: Int, isNew: Bool = true) {
    addLeaving(bytes)
    if isNew { mean += (bytes - mean) / 16 }
  }

  /// Counts a publication, or a delivery read ahead, until it is removed.
  mutating func addLeaving(_ bytes: Int) {
    total += bytes
    leaving += bytes
  }

  /// Keeps a request of the application. Returns false, without a change, if there is no room.
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

  func kept(for app: Int) -> Int { app < byApp.count ? byApp[app] : 0 }

  /// - Parameter app: the application for which it was kept; nil if it wasn't.
  mutating func remove(_ bytes: Int, keptFor app: Int?) {
    total -= bytes
    if let app { byApp[app] -= bytes } else { leaving -= bytes }
  }

  /// - Returns: true if `isReadingPaused` has changed.
  mutating func adjustReading() -> Bool {
    let pauses = total > (isReadingPaused ? Self.readingMark / 4 * 3 : Self.readingMark)
    guard pauses != isReadingPaused else { return false }
    isReadingPaused = pauses
    return true
  }

  /// The number of average bodies that fill the budget.
  var fitting: Int { Self.budget / max(mean, 1) }

  /// The limit in bytes for deliveries read ahead, and the bytes of each beside its body.
  private static let aheadBudget = 44 << 20
  static let aheadOverhead = 250
  /// The number of average deliveries that fill this limit.
  var fittingAhead: Int { Self.aheadBudget / (max(mean, 0) + Self.aheadOverhead) }
}
