/// Warns of certificates that end soon: once each at 30, 7 and 1 days before, and when they have ended.
struct ExpiryWatch {
  /// Days before the end.
  static let marks: [Int64] = [30, 7, 1, 0]

  private var warned: [String: Int64] = [:]

  /// - Parameter now: unix seconds.
  mutating func warn(of expiries: [(name: String, notAfter: Int64)], at now: Int64, _ log: Log) {
    for (name, notAfter) in expiries {
      guard let mark = Self.mark(notAfter: notAfter, at: now) else {
        warned[name] = nil
        continue
      }
      guard warned[name].map({ mark < $0 }) ?? true else { continue }
      warned[name] = mark
      if mark == 0 {
        log.error("certificate expired", ["credential": name])
      } else {
        log.warning("certificate expires soon", ["credential": name, "days": (notAfter - now) / 86_400])
      }
    }
  }

  /// The nearest mark that is reached; nil while there is more time.
  static func mark(notAfter: Int64, at now: Int64) -> Int64? {
    marks.last { notAfter - now <= $0 * 86_400 }
  }
}
