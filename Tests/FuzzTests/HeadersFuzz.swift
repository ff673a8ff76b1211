import PushCore
import Wire

@testable import AMQP
@testable import Delivery

/// What a worker reads from headers it writes again just so; forged ones are refused or leave only what is within bounds.
enum HeadersFuzz {
  private static let now: Int64 = 1_795_209_720_123

  static func run(_ input: inout Input) throws(Violation) {
    switch input.byte() % 5 {
    case 0: try admit(&input)
    case 1: try checkTable(table(of: input.remainder()))
    case 2: try checkTicket([PageTicket.header: .string(input.remainder())])
    case 3: try checkRecord(record(&input))
    default: try restore(&input)
    }
  }

  /// A delivery with any properties, as the pipeline takes it in.
  private static func admit(_ input: inout Input) throws(Violation) {
    let choices = input.byte()
    let bytes = input.remainder()
    var cursor = WireCursor(0..<bytes.count)
    var cache = PropertyCache()
    var delivery = Delivery()
    guard delivery.properties.read(&cursor, in: bytes.span.bytes, cache: &cache) else { return }
    delivery.body = Array(#"{"to":"apns:\#(String(repeating: "0a", count: 32))","notification":{"body":"b"}}"#.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    try checkTable(delivery.properties.headers)
    try checkTicket(delivery.properties.headers)
    try checkRecord(delivery.properties.headers)
    let entry = InFlight(index: 0)
    let apps = Applications()
    for id in choices & 1 == 0 ? ["com.example.app"] : ["com.example.app", "com.example.other"] {
      apps.put(Array(id.utf8), packages: [Array("com.example.app".utf8)], senders: [])
    }
    let intake = Intake(apps: apps, limits: RequestLimits())
    var random = RandomSource()
    intake.identify(entry, delivery, using: &random)
    var record: RetryRecord?
    if case .record(let read) = RetryRecord.read(delivery.properties.headers) { record = read }
    if let rejection = intake.admit(entry, delivery, record, at: now) {
      try require(!rejection.reason.isEmpty, "refused with \(rejection.code) and no reason")
    } else {
      try require(entry.identity.app != nil && entry.request != nil, "admitted without an app")
      try require(0...Intake.longestLife ~= entry.identity.clockLag, "a clock behind by \(entry.identity.clockLag) ms")
    }
    try require(!entry.identity.messageID.isEmpty, "a request without an id")
  }

  private static func table(of bytes: [UInt8]) -> FieldTable {
    FieldTable(validating: bytes.span.bytes, range: 0..<bytes.count) ?? FieldTable()
  }

  private static func checkTable(_ table: FieldTable) throws(Violation) {
    try require(table.removing { _ in false } == table, "copying a table changes it")
    var again = FieldTable()
    for (key, value) in table.entries where String(validating: key, as: UTF8.self) != nil {
      again.append(String(decoding: key, as: UTF8.self), value)
      _ = table.string(String(decoding: key, as: UTF8.self))
    }
    var third = FieldTable()
    for (key, value) in again.entries { third.append(String(decoding: key, as: UTF8.self), value) }
    try require(third == again, "writing a table and reading it changes it")
  }

  private static func checkTicket(_ headers: FieldTable) throws(Violation) {
    guard case .ticket(let ticket) = PageTicket.read(headers) else { return }
    var random = RandomSource()
    _ = ticket.next(after: ticket.upTo, using: &random)
    var carried = FieldTable()
    ticket.append(to: &carried)
    try require(PageTicket.read(carried) == .ticket(ticket), "a ticket comes back as another")
  }

  private static func checkRecord(_ headers: FieldTable) throws(Violation) {
    guard case .record(let record) = RetryRecord.read(headers) else { return }
    var (first, second) = (FieldTable(), FieldTable())
    record.append(to: &first)
    guard case .record(let again) = RetryRecord.read(first) else {
      throw Violation(description: "a record that is unreadable once written")
    }
    again.append(to: &second)
    try require(first == second, "a record comes back as another")
    try require(0...1_000 ~= record.attempts, "\(record.attempts) attempts")
  }

  /// A record with chosen values, of the right types or not.
  private static func record(_ input: inout Input) -> FieldTable {
    var table = FieldTable()
    for name in ["form", "attempts", "round", "deadline", "error", "reason", "status", "settled", "due"] {
      let value: FieldValue
      switch input.byte() % 6 {
      case 0: continue
      case 1: value = .integer(Int64(input.byte()))
      case 2: value = .integer(input.integer())
      case 3: value = .string(input.counted())
      case 4: value = .string(Array(PushError.allCases[Int(input.byte()) % PushError.allCases.count].rawValue.utf8))
      default: value = .timestamp(input.integer())
      }
      table.append("x-push-retry-\(name)", value)
    }
    return table
  }

  /// How far a list has come, put back to recipients of any kind.
  private static func restore(_ input: inout Input) throws(Violation) {
    let isNamed = input.byte() & 1 != 0
    let fresh = (0..<Int(input.byte() % 12)).map { index -> Recipient in
      let form = input.byte()
      var recipient = Recipient(platform: form & 1 == 0 ? .apns : .fcm, token: [UInt8(index), form], pool: 0)
      switch form >> 4 {
      case 1:
        recipient.token = []
        recipient.state = .refused(Rejection(.invalidRegistration, "no device"))
      // Named by its token it is the other one.
      case 2 where !isNamed: recipient.state = .sameAs(max(0, index - 1))
      default: break
      }
      return recipient
    }
    var once = fresh
    SettledTargets.restore(input.remainder(), to: &once, until: now)
    for (before, after) in zip(fresh, once) {
      guard case .refused = before.state else { continue }
      switch after.state {
      case .refused, .failed: continue
      default: throw Violation(description: "a recipient that no pool takes becomes \(after.state)")
      }
    }
    let written = SettledTargets.encode(once, byToken: isNamed)
    var twice = fresh
    SettledTargets.restore(written, to: &twice, until: now)
    try require(SettledTargets.encode(twice, byToken: isNamed) == written, "states come back as others")
  }
}
