import Logging

/// Warns of each ending certificate once at 30, 7 and 1 days before its end, and once after its end.
package struct ExpiryWatch {
  static let marks: [Int64] = [30, 7, 1, 0]

  private var warned: [String: Int64] = [:]

  package init() {}

  /// - Parameters:
  ///   - expiries: sorted by end, soonest first.
  ///   - now: Unix seconds.
  package mutating func warn(of expiries: [CertificateExpiry], at now: Int64, _ log: Log) {
    var near: [String: Int64] = [:]
    for expiry in expiries {
      guard let mark = Self.mark(notAfter: expiry.notAfter, at: now) else { break }
      near[expiry.name] = min(mark, warned[expiry.name] ?? mark)
      guard warned[expiry.name].map({ mark < $0 }) ?? true else { continue }
      if mark == 0 {
        log.error("certificate expired", ["credential": expiry.name])
      } else {
        log.warning("certificate expires soon", ["credential": expiry.name, "days": (expiry.notAfter - now) / 86_400])
      }
    }
    warned = near
  }

  /// The smallest mark, in days, that has been reached; nil if none.
  package static func mark(notAfter: Int64, at now: Int64) -> Int64? {
    marks.last { notAfter - now <= $0 * 86_400 }
  }
}

package struct CertificateExpiry: Sendable {
  package var name: String
  /// Unix seconds.
  package var notAfter: Int64

  package init(name: String, notAfter: Int64) {
    self.name = name
    self.notAfter = notAfter
  }
}
