import Broker
import DeviceRegistry
import PushCore

/// The body of an operation on messages: a JSON object with a filter, the operator's reason, and for a replay a rate. The filter must be
/// there, so that a wrong body doesn't select all messages; an empty one does.
struct LetterBody {
  private(set) var filter = LetterFilter()
  let reason: [UInt8]?
  /// Letters per second.
  let rate: Int64?

  private static let mostIDs = 100
  private static let rates: ClosedRange<Int64> = 1...1_000_000
  private static let limits: ClosedRange<Int64> = 1...1_000_000_000

  /// - Parameter names: `filter` and `rate`, as far as the operation has them.
  init(_ body: [UInt8], with names: [String]) throws(Fault) {
    let body = try OperationBody(body, with: names, bytes: 16_384)
    let document = body.document
    reason = body.reason
    rate = try body.integer("rate", in: Self.rates, "letters per second, from 1 to \(Self.rates.upperBound)")
    guard names.contains("filter") else { return }
    guard let value = document.given("filter"), document.kind(value) == .object else {
      throw .badRequest("filter: expected an object; an empty one selects all messages")
    }
    for (name, value) in document.members(of: value) { try set(document.text(name), value, document) }
  }

  private mutating func set(_ name: String, _ value: Int, _ document: JSONDocument) throws(Fault) {
    switch name {
    case "limit":
      guard let number = document.integer(value), Self.limits.contains(number) else {
        throw .badRequest("limit: expected a whole number from 1 to \(Self.limits.upperBound)")
      }
      filter.limit = Int(number)
    case "ids":
      let ids = document.kind(value) == .array ? Array(document.elements(of: value)) : []
      guard (1...Self.mostIDs).contains(ids.count), ids.allSatisfy({ document.kind($0) == .string }) else {
        throw .badRequest("filter.ids: expected an array of 1 to \(Self.mostIDs) message ids")
      }
      filter.ids = Set(ids.map { String(decoding: document.string($0), as: UTF8.self) })
    default:
      guard document.kind(value) == .string else { throw .badRequest("filter.\(name.prefix(64)): expected a text") }
      try Self.set(name, document.string(value), &filter)
    }
  }

  private static func set(_ name: String, _ text: [UInt8], _ filter: inout LetterFilter) throws(Fault) {
    let value = String(decoding: text, as: UTF8.self)
    switch name {
    case "app": filter.app = value
    case "error": filter.error = value
    case "origin": filter.origin = value
    case "reason": filter.reason = value.lowercased()
    case "since":
      guard let since = Timestamp.milliseconds(of: text) else {
        throw .badRequest("since: expected a time such as 2026-11-20T21:22:00Z")
      }
      filter.since = since
    default:
      throw .badRequest("\(name.prefix(64)): unknown filter; there are app, error, origin, reason, since, ids and limit")
    }
  }

  /// The filter in a query: the same names, and `id` for one message id.
  static func filter(_ call: HTTPCall) throws(Fault) -> LetterFilter {
    var filter = LetterFilter()
    for name in ["app", "error", "origin", "reason", "since"] {
      if let text = call.query(name) { try set(name, text, &filter) }
    }
    if let id = call.query("id") { filter.ids = [String(decoding: id, as: UTF8.self)] }
    filter.limit = try call.number("limit", most: Int(limits.upperBound))
    return filter
  }
}
