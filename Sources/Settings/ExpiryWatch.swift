import Logging

/// Warns of certificates that end soon: once each at 30, 7 and 1 days before, and when they have ended.
package struct ExpiryWatch {
  /// Days before the end.
  static let marks: [Int64] = [30, 7, 1, 0]

  private var warned: [String: Int64] = [:]

  package init() {}

  /// - Parameters:
  ///   - expiries: the soonest first.
  ///   - now: unix seconds.
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

  /// The nearest mark that is reached; nil while there is more time.
  package static func mark(notAfter: Int64, at now: Int64) -> Int64? {
    marks.last { notAfter - now <= $0 * 86_400 }
  }
}

/// When a certificate ends.
package struct CertificateExpiry: Sendable {
  /// The credential's.
  package var name: String
  /// Unix seconds.
  package var notAfter: Int64

  package init(name: String, notAfter: Int64) {
    self.name = name
    self.notAfter = notAfter
  }
}
