import DeviceRegistry
import PushCore

/// The body of an operation: a JSON object with a reason, and what else the operation needs; or nothing.
struct OperationOrder {
  /// A member besides `reason`.
  enum Member: String {
    case until, rate, user
  }

  private(set) var reason: [UInt8]?
  /// Unix milliseconds.
  private(set) var until: Int64?
  /// Pushes per second.
  private(set) var rate: Int64?
  private(set) var user: [UInt8]?

  private static let rates: ClosedRange<Int64> = 1...10_000_000

  /// - Parameter member: the only member that the body may have besides `reason`. A rate must be there, if only as null.
  init(_ body: [UInt8], _ member: Member?, now: Int64) throws(Fault) {
    guard !body.isEmpty else {
      if member == .rate { throw Self.noRate }
      return
    }
    let document: JSONDocument
    do throws(JSONError) { document = try JSONDocument(body, limits: JSONLimits(bytes: 4_096)) } catch {
      throw .badRequest(error.description)
    }
    guard document.kind(document.root) == .object else { throw .badRequest("expected an object") }
    if member == .rate, document.value("rate", of: document.root) == nil { throw Self.noRate }
    for (name, value) in document.members(of: document.root) {
      let word = document.text(name)
      guard word == "reason" || word == member?.rawValue else {
        let known = ["reason", member?.rawValue].compactMap(\.self).joined(separator: " and ")
        throw .badRequest("\(word.prefix(64)): unknown key; this operation has \(known)")
      }
      guard document.kind(value) != .null else { continue }
      let text = document.kind(value) == .string ? document.string(value) : nil
      switch word {
      case "reason":
        guard let text, FleetOperation.isReason(text) else {
          throw .badRequest(
            "reason: expected a text of at most \(FleetOperation.longestReason) bytes, without control characters")
        }
        reason = text
      case "until":
        guard let until = text.flatMap({ Timestamp.milliseconds(of: $0) }), until > now else {
          throw .badRequest("until: expected a time to come, such as 2026-11-20T21:22:00Z")
        }
        self.until = until
      case "user":
        guard let text else { throw .badRequest("user: expected a text") }
        user = text
      default:
        guard let rate = try? document.integer(value), Self.rates.contains(rate) else {
          throw .badRequest("rate: expected pushes per second, from 1 to \(Self.rates.upperBound), or null")
        }
        self.rate = rate
      }
    }
  }

  private static let noRate = Fault.badRequest("rate: expected pushes per second, or null for no limit")
}
