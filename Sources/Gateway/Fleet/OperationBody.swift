import DeviceRegistry
import PushCore

/// The body of an operation: a JSON object with the operator's reason and the operation's other members. It may be empty.
struct OperationBody {
  let document: JSONDocument
  private(set) var reason: [UInt8]?

  private static let rates: ClosedRange<Int64> = 1...10_000_000

  /// - Parameters:
  ///   - names: the members that the operation has besides `reason`.
  ///   - bytes: the most bytes of the body.
  init(_ body: [UInt8], with names: [String], bytes: Int = 4_096) throws(Fault) {
    do throws(JSONError) {
      document = try JSONDocument(body.isEmpty ? Array("{}".utf8) : body, limits: JSONLimits(bytes: bytes))
    } catch { throw .badRequest(error.description) }
    guard document.kind(document.root) == .object else { throw .badRequest("expected an object") }
    let known = ["reason"] + names
    for (name, _) in document.members(of: document.root) where !known.contains(document.text(name)) {
      let has = known.joined(separator: ", ")
      throw .badRequest("\(document.text(name).prefix(64)): unknown key; this operation has \(has)")
    }
    guard let value = document.given("reason") else { return }
    guard let text = text(value), FleetOperation.isReason(text) else {
      throw .badRequest("reason: expected a text of at most \(FleetOperation.longestReason) bytes, without control characters")
    }
    reason = text
  }

  private func text(_ value: Int) -> [UInt8]? { document.kind(value) == .string ? document.string(value) : nil }

  /// Unix milliseconds.
  func until(after now: Int64) throws(Fault) -> Int64? {
    guard let value = document.given("until") else { return nil }
    guard let until = text(value).flatMap({ Timestamp.milliseconds(of: $0) }), until > now else {
      throw .badRequest("until: expected a time to come, such as 2026-11-20T21:22:00Z")
    }
    return until
  }

  /// Pushes per second. The member must be there, if only as null.
  func rate() throws(Fault) -> Int64? {
    guard document.value("rate", of: document.root) != nil else {
      throw .badRequest("rate: expected pushes per second, or null for no limit")
    }
    return try integer("rate", in: Self.rates, "pushes per second, from 1 to \(Self.rates.upperBound), or null")
  }

  /// - Returns: nil if the member is null or isn't there.
  func integer(_ name: String, in range: ClosedRange<Int64>, _ words: String) throws(Fault) -> Int64? {
    guard let value = document.given(name) else { return nil }
    guard let number = document.integer(value), range.contains(number) else { throw .badRequest("\(name): expected \(words)") }
    return number
  }

  func user() throws(Fault) -> [UInt8] {
    guard let value = document.given("user") else { throw .badRequest("user: expected the name of a user") }
    guard let user = text(value) else { throw .badRequest("user: expected a text") }
    return user
  }
}
