import PushCore

/// The body of an operation: a JSON object with `reason`, `until` and `rate`, or nothing.
struct OperationOrder {
  private(set) var reason: [UInt8]?
  /// Unix milliseconds.
  private(set) var until: Int64?
  /// Pushes per second.
  private(set) var rate: Int64?

  /// Bytes.
  private static let longestReason = 500
  private static let rates: ClosedRange<Int64> = 1...10_000_000

  init(_ body: [UInt8], now: Int64) throws(Fault) {
    guard !body.isEmpty else { return }
    let document: JSONDocument
    do throws(JSONError) { document = try JSONDocument(body, limits: JSONLimits(bytes: 4_096)) } catch {
      throw .badRequest(error.description)
    }
    guard document.kind(document.root) == .object else { throw .badRequest("expected an object") }
    for (name, value) in document.members(of: document.root) where document.kind(value) != .null {
      let text = document.kind(value) == .string ? document.string(value) : nil
      switch document.text(name) {
      case "reason":
        guard let text, text.count <= Self.longestReason, text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
          throw .badRequest("reason: expected a text of at most \(Self.longestReason) bytes, without control characters")
        }
        reason = text
      case "until":
        guard let until = text.flatMap({ Timestamp.milliseconds(of: $0) }), until > now else {
          throw .badRequest("until: expected a time to come, such as 2026-11-20T21:22:00Z")
        }
        self.until = until
      case "rate":
        guard let rate = try? document.integer(value), Self.rates.contains(rate) else {
          throw .badRequest("rate: expected pushes per second, from 1 to \(Self.rates.upperBound), or null")
        }
        self.rate = rate
      case let word: throw .badRequest("\(word.prefix(64)): unknown key; there are reason, until and rate")
      }
    }
  }
}
