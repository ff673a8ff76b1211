import DeviceRegistry
import PushCore

/// The body of an operation with at most one member besides the reason.
struct OperationOrder {
  /// A member besides `reason`.
  enum Member: String {
    case until, rate, user
  }

  let reason: [UInt8]?
  /// Unix milliseconds.
  private(set) var until: Int64?
  /// Pushes per second.
  private(set) var rate: Int64?
  private(set) var user: [UInt8]?

  private static let rates: ClosedRange<Int64> = 1...10_000_000

  /// - Parameter member: the only member that the body may have besides `reason`. A rate must be there, if only as null.
  init(_ body: [UInt8], _ member: Member?, now: Int64) throws(Fault) {
    let body = try OperationBody(body, with: member.map { [$0.rawValue] } ?? [])
    reason = body.reason
    if member == .rate, body.document.value("rate", of: body.document.root) == nil {
      throw .badRequest("rate: expected pushes per second, or null for no limit")
    }
    guard let member, let value = body[member.rawValue] else { return }
    switch member {
    case .until:
      guard let until = body.text(value).flatMap({ Timestamp.milliseconds(of: $0) }), until > now else {
        throw .badRequest("until: expected a time to come, such as 2026-11-20T21:22:00Z")
      }
      self.until = until
    case .user:
      guard let user = body.text(value) else { throw .badRequest("user: expected a text") }
      self.user = user
    case .rate:
      guard let rate = try? body.document.integer(value), Self.rates.contains(rate) else {
        throw .badRequest("rate: expected pushes per second, from 1 to \(Self.rates.upperBound), or null")
      }
      self.rate = rate
    }
  }
}
