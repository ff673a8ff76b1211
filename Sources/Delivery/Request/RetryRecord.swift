import AMQP
import Broker
import PushCore

/// The progress of a request on the ladder, in headers beside the unchanged body. The broker's `x-death` isn't used, because
/// its counts differ between versions and clients can forge them.
struct RetryRecord {
  var attempts: Int
  /// How often the request has been on the ladder, this time included. Parking counts here, but not as an attempt.
  var round: Int
  /// Unix milliseconds, computed once.
  var deadline: Int64
  var error: PushError
  var reason: String
  var status: Int?
  /// The progress of a list's targets; absent for a single target.
  var settled: [UInt8]?
  /// The earliest return from the ladder, in unix milliseconds of the clock that dated `settled`. A clock that is behind this
  /// was set back, or is another worker's.
  var due: Int64?
  /// For a request with a collapse key.
  var arrival: Arrival?
  /// When it was first put off, in unix milliseconds; nil on a record of an earlier release.
  var putOffAt: Int64?

  private enum Name {
    /// The form of the other headers; the present one, 1, is not written.
    static let form = "x-push-retry-form"
    static let attempts = "x-push-retry-attempts"
    static let round = "x-push-retry-round"
    static let deadline = "x-push-retry-deadline"
    static let error = "x-push-retry-error"
    static let reason = "x-push-retry-reason"
    static let status = "x-push-retry-status"
    static let settled = "x-push-retry-settled"
    static let due = "x-push-retry-due"
    static let published = "x-push-retry-published"
    static let arrived = "x-push-retry-arrived"
  }

  enum Reading {
    case absent
    /// In a newer form.
    case newer
    case unreadable
    case record(RetryRecord)
  }

  static func read(_ headers: FieldTable) -> Reading {
    switch headers[Name.form] {
    case nil, .integer(1): break
    case .integer(2...): return .newer
    default: return .unreadable
    }
    if headers[Name.attempts] == nil, headers[Name.deadline] == nil { return .absent }
    return RetryRecord(headers).map { .record($0) } ?? .unreadable
  }

  func append(to headers: inout FieldTable) {
    headers.append(Name.attempts, .integer(Int64(attempts)))
    headers.append(Name.round, .integer(Int64(round)))
    headers.append(Name.deadline, .integer(deadline))
    headers.append(Name.error, .string(Array(error.rawValue.utf8)))
    headers.append(Name.reason, .text(String(reason.prefix(200))))
    if let status { headers.append(Name.status, .integer(Int64(status))) }
    if let settled { headers.append(Name.settled, .string(settled)) }
    if let due { headers.append(Name.due, .integer(due)) }
    if let arrival {
      headers.append(Name.published, .integer(arrival.published))
      headers.append(Name.arrived, .integer(arrival.number))
    }
    if let putOffAt { headers.append(NoteReader.putOffHeader, .integer(putOffAt)) }
  }

  /// The milliseconds by which this clock is behind the one that dated the record.
  func lag(at now: Int64) -> Int64 {
    guard let due, due > now else { return 0 }
    let (lag, overflow) = due.subtractingReportingOverflow(now)
    return overflow ? Intake.longestLife : min(lag, Intake.longestLife)
  }
}

extension RetryRecord {
  private init?(_ headers: FieldTable) {
    guard let attempts = headers.integer(Name.attempts), let deadline = headers.integer(Name.deadline),
      (0...1_000).contains(attempts)
    else { return nil }
    func text(_ name: String) -> String? { headers.string(name).map { String(decoding: $0, as: UTF8.self) } }
    func number(_ name: String) -> Int? { headers.integer(name).map { Int(truncatingIfNeeded: $0) } }
    self.init(
      attempts: Int(attempts), round: number(Name.round) ?? 1, deadline: deadline,
      error: text(Name.error).flatMap { PushError(rawValue: $0) } ?? .unavailable, reason: text(Name.reason) ?? "",
      status: number(Name.status), settled: headers.string(Name.settled), due: headers.integer(Name.due),
      putOffAt: headers.integer(NoteReader.putOffHeader))
    if let time = headers.integer(Name.published), let number = headers.integer(Name.arrived) {
      arrival = Arrival(published: time, number: number)
    }
  }
}

/// The progress of each target of a list in a compact form: one byte and its data.
enum SettledTargets {
  private enum Mark {
    static let waiting: UInt8 = 0
    static let delivered: UInt8 = 1
    static let failed: UInt8 = 2
    static let postponed: UInt8 = 3
    static let same: UInt8 = 4
    /// The first byte if each target's mark follows its name, because the members of a group change.
    static let named: UInt8 = 5
  }

  /// The limit in bytes above which providers' names are left out. The record and the producer's headers must fit a frame of
  /// 128 KiB.
  private static let longest = 100_000

  /// - Parameter names: whether a recipient's provider name is wanted; nil if none is.
  static func encode(_ recipients: [Recipient], byToken: Bool = false, names: ((Int) -> Bool)? = { _ in true }) -> [UInt8] {
    let bytes = write(recipients, byToken, names ?? { _ in false })
    return bytes.count <= longest ? bytes : write(recipients, byToken) { _ in false }
  }

  private static func write(_ recipients: [Recipient], _ byToken: Bool, _ isNameWanted: (Int) -> Bool) -> [UInt8] {
    var bytes: [UInt8] = byToken ? [Mark.named] : []
    bytes.reserveCapacity(recipients.count * (byToken ? 10 : 2))
    var named = recipients.enumerated().map { (name: byToken ? name($1, $0) : 0, index: $0, recipient: $1) }
    if byToken {
      // An entry whose device is gone by the next round is found by its place.
      for (index, recipient) in recipients.enumerated() where !recipient.token.isEmpty {
        if case .failed = recipient.state { named.append((UInt64(index), index, recipient)) }
      }
    }
    for (name, index, recipient) in named {
      if byToken { bytes.appendBigEndian(name) }
      switch recipient.state {
      case .waiting, .unresolved, .gone, .sent, .refused: bytes.append(Mark.waiting)
      case .sameAs: bytes.append(Mark.same)
      case .delivered(let name):
        let kept = isNameWanted(index) ? name.prefix(255) : []
        bytes.append(Mark.delivered)
        bytes.append(UInt8(truncatingIfNeeded: kept.count))
        bytes.append(contentsOf: kept)
      case .failed(let code):
        bytes.append(Mark.failed)
        bytes.append(code.code)
      case .postponed(let until):
        bytes.append(Mark.postponed)
        for shift in stride(from: Int64(40), through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: until >> shift)) }
      }
    }
    return bytes
  }

  /// The same for a device in every round; an entry without a device is named by its place.
  private static func name(_ recipient: Recipient, _ index: Int) -> UInt64 {
    guard !recipient.token.isEmpty else { return UInt64(index) }
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ UInt64(recipient.platform.rawValue)
    for byte in recipient.identity { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash
  }

  /// Restores the states. If the record doesn't fit the request, no recipient changes. A recipient without a pool stays
  /// refused.
  /// - Parameters:
  ///   - deadline: the latest next attempt, in unix milliseconds.
  ///   - lag: how far this clock is behind the one that dated the record, in milliseconds.
  static func restore(_ bytes: [UInt8], to recipients: inout [Recipient], until deadline: Int64, lag: Int64 = 0) {
    var states: [Recipient.State?] = []
    var names: [UInt64] = []
    let isNamed = bytes.first == Mark.named
    var rest = bytes.dropFirst(isNamed ? 1 : 0)
    while !rest.isEmpty {
      if isNamed {
        guard let name = rest.takeNumber() else { return }
        names.append(UInt64(bitPattern: name))
      }
      guard let mark = rest.popFirst() else { return }
      switch mark {
      case Mark.waiting, Mark.same: states.append(nil)
      case Mark.delivered:
        guard let length = rest.popFirst(), let name = rest.take(Int(length)) else { return }
        states.append(.delivered(name: Array(name)))
      case Mark.failed:
        guard let code = rest.popFirst(), let error = PushError(code: code) else { return }
        states.append(.failed(error))
      case Mark.postponed:
        guard let time = rest.takeNumber(bytes: 6) else { return }
        states.append(.postponed(until: min(time - lag, deadline)))
      default: return
      }
    }
    if isNamed {
      let known = Dictionary(zip(names, states).filter { $1 != nil }, uniquingKeysWith: { first, _ in first })
      states = recipients.enumerated().map { index, recipient in
        if case .sameAs = recipient.state { nil } else { known[name(recipient, index)] ?? nil }
      }
    }
    guard states.count == recipients.count else { return }
    for (index, state) in states.enumerated() {
      switch (recipients[index].state, state) {
      case (_, nil): break
      case (.refused, .failed(let code)?): recipients[index].state = .failed(code)
      // A postponed target has ended meanwhile: the registry has the device as gone, or the list names it twice.
      case (.refused, _), (.gone, .postponed?), (.sameAs, .postponed?): break
      case (_, let state?): recipients[index].state = state
      }
    }
  }
}
