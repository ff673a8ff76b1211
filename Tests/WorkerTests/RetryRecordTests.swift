import AMQP
import PushCore
import Testing

@testable import Delivery

@Suite("A request's record on the ladder")
struct RetryRecordTests {
  @Test("survives its header form")
  func roundTrip() throws {
    let record = RetryRecord(
      attempts: 3, round: 5, deadline: 1_795_000_000_123, error: .deviceMessageRateExceeded, reason: "TooManyRequests",
      status: 429,
      settled: [1, 2, 3], putOffAt: 7)
    var headers = FieldTable()
    record.append(to: &headers)
    guard case .record(let back) = RetryRecord.read(headers) else {
      Issue.record("unreadable")
      return
    }
    #expect(back.attempts == 3 && back.round == 5 && back.deadline == 1_795_000_000_123 && back.status == 429)
    #expect(back.error == .deviceMessageRateExceeded && back.reason == "TooManyRequests" && back.settled == [1, 2, 3])
    #expect(back.putOffAt == 7)
  }

  @Test("is absent without its headers; a malformed one is unreadable, a newer one is recognised")
  func forms() {
    func read(_ headers: FieldTable) -> String {
      switch RetryRecord.read(headers) {
      case .absent: "absent"
      case .newer: "newer"
      case .unreadable: "unreadable"
      case .record: "record"
      }
    }
    let (attempts, deadline, form) = ("x-push-retry-attempts", "x-push-retry-deadline", "x-push-retry-form")
    #expect(read(FieldTable()) == "absent")
    #expect(read(["x-push-retry-round": .integer(3)]) == "absent")
    #expect(read([attempts: .integer(1), deadline: .integer(1)]) == "record")
    #expect(read([attempts: .integer(1), deadline: .integer(1), form: .integer(1)]) == "record")
    #expect(read([attempts: .integer(1), deadline: .integer(1), form: .integer(2)]) == "newer")
    #expect(read([form: .integer(2)]) == "newer")
    #expect(read([attempts: .integer(1), deadline: .integer(1), form: .integer(0)]) == "unreadable")
    #expect(read([attempts: .integer(1), deadline: .integer(1), form: .text("2")]) == "unreadable")
    #expect(read([attempts: .text("many"), deadline: .integer(1)]) == "unreadable")
    #expect(read([attempts: .integer(-1), deadline: .integer(1)]) == "unreadable")
    #expect(read([attempts: .integer(1)]) == "unreadable")
    #expect(read([deadline: .integer(1)]) == "unreadable")
  }

  static func recipient(_ state: Recipient.State) -> Recipient {
    Recipient(platform: .apns, token: [1], pool: 0, state: state)
  }

  @Test("restores each target of a list")
  func targets() {
    let states: [Recipient.State] = [
      .waiting, .sent, .delivered(name: []), .delivered(name: Array("projects/p/messages/1".utf8)), .failed(.notRegistered),
      .postponed(until: 1_795_000_000_123), .sameAs(2),
    ]
    let bytes = SettledTargets.encode(states.map(Self.recipient))
    var restored = states.map { _ in Self.recipient(.waiting) }
    SettledTargets.restore(bytes, to: &restored, until: .max)
    #expect(SettledTargets.encode(restored).count == bytes.count)
    guard case .waiting = restored[0].state, case .waiting = restored[1].state, case .delivered(let none) = restored[2].state,
      case .delivered(let name) = restored[3].state, case .failed(.notRegistered) = restored[4].state,
      case .postponed(1_795_000_000_123) = restored[5].state
    else {
      Issue.record("states differ: \(restored)")
      return
    }
    #expect(none.isEmpty && name.count == 21)
  }

  @Test("shortens waits after the clock was set back")
  func clockSetBack() {
    let written: Int64 = 1_800_000_000_000
    let bytes = SettledTargets.encode([
      Self.recipient(.postponed(until: written + 900)), Self.recipient(.postponed(until: written + 60_000)),
    ])
    let record = RetryRecord(
      attempts: 1, round: 1, deadline: written + 3_600_000, error: .unavailable, reason: "", status: nil, settled: bytes,
      due: written + 1_000)
    var headers = FieldTable()
    record.append(to: &headers)
    guard case .record(let back) = RetryRecord.read(headers) else {
      Issue.record("unreadable")
      return
    }
    // On time, an hour late in the lane, two hours back, and a forged date.
    for (now, lag) in [(1_000, 0), (3_600_000, 0), (-7_199_000, 7_200_000)] as [(Int64, Int64)] {
      #expect(back.lag(at: written + now) == lag)
      var recipients = [Self.recipient(.waiting), Self.recipient(.waiting)]
      SettledTargets.restore(bytes, to: &recipients, until: written + 3_600_000, lag: back.lag(at: written + now))
      guard case .postponed(let first) = recipients[0].state, case .postponed(let second) = recipients[1].state else {
        Issue.record("states differ: \(recipients)")
        return
      }
      #expect(first == written + 900 - lag && second == written + 60_000 - lag)
    }
    var forged = back
    forged.due = .max
    #expect(forged.lag(at: .min / 2) <= 28 * 86_400_000)
  }

  @Test("lets no target wait beyond the request's deadline")
  func bounded() {
    var recipients = [Self.recipient(.waiting), Self.recipient(.waiting)]
    let bytes = SettledTargets.encode([Self.recipient(.postponed(until: 7)), Self.recipient(.postponed(until: 1 << 47))])
    SettledTargets.restore(bytes, to: &recipients, until: 1_000)
    guard case .postponed(7) = recipients[0].state, case .postponed(1_000) = recipients[1].state else {
      Issue.record("states differ: \(recipients)")
      return
    }
  }

  @Test("of the longest list fits a frame, with the names that a result shows or without any")
  func longest() {
    let name = [UInt8](repeating: 7, count: 84)
    let entry = InFlight(index: 0)
    entry.recipients = (0..<1_500).map {
      Recipient(platform: .fcm, token: Array("device:\($0)".utf8)[...], pool: 0, state: .delivered(name: name))
    }
    entry.recipients[0].state = .postponed(until: 5)
    entry.registry.members = [(0, 1_000..<1_250), (1, 1_250..<1_500)]
    func restored(_ bytes: [UInt8]) -> [Recipient] {
      var recipients = entry.recipients
      for index in recipients.indices { recipients[index].state = .waiting }
      SettledTargets.restore(bytes, to: &recipients, until: .max)
      return recipients
    }
    func names(_ recipients: [Recipient]) -> [Int] {
      recipients.indices.filter { if case .delivered(name) = recipients[$0].state { true } else { false } }
    }
    func delivered(_ recipients: [Recipient]) -> Int {
      recipients.count { if case .delivered = $0.state { true } else { false } }
    }
    // The first reached device of each entry that was not reached itself, and every entry.
    let wanted = restored(SettledTargets.encode(entry.recipients, byToken: true, names: entry.namesToKeep))
    #expect(names(wanted) == Array(1...1_000) && delivered(wanted) == 1_499)
    let unwanted = SettledTargets.encode(entry.recipients, byToken: true, names: nil)
    #expect(unwanted.count < 20_000 && delivered(restored(unwanted)) == 1_499)
    let endless = [UInt8](repeating: 7, count: 255)
    for index in 1..<1_500 { entry.recipients[index].state = .delivered(name: endless) }
    let shortened = SettledTargets.encode(entry.recipients, byToken: true, names: entry.namesToKeep)
    #expect(shortened.count < 110_000 && delivered(restored(shortened)) == 1_499)
  }

  @Test("identifies devices by token if groups change between two rounds, and a gone one by its place")
  func namedTargets() {
    func device(_ token: UInt8, _ state: Recipient.State) -> Recipient {
      Recipient(platform: .fcm, token: [token], pool: 0, state: state)
    }
    let bytes = SettledTargets.encode(
      [device(1, .delivered(name: [7])), device(2, .failed(.notRegistered)), device(3, .postponed(until: 5))], byToken: true)
    let refused = Recipient.State.refused(Rejection(.invalidRegistration, "no device"))
    var later = [
      device(3, .waiting), Recipient(platform: .apns, token: [], pool: -1, state: refused), device(1, .waiting),
      device(4, .waiting),
    ]
    SettledTargets.restore(bytes, to: &later, until: .max)
    guard case .postponed(5) = later[0].state, case .failed(.notRegistered) = later[1].state,
      case .delivered = later[2].state, case .waiting = later[3].state
    else {
      Issue.record("states differ: \(later)")
      return
    }
  }

  @Test("recognises a browser whose subscription has other keys in the next round")
  func renewedSubscription() {
    func browser(_ key: UInt8, _ state: Recipient.State) -> Recipient {
      let token = Array("https://push.example.net/p/1".utf8) + [0] + [UInt8](repeating: key, count: 89)
      return Recipient(platform: .webpush, token: token[...], pool: 0, state: state)
    }
    let bytes = SettledTargets.encode([browser(1, .delivered(name: []))], byToken: true)
    var later = [browser(2, .waiting)]
    SettledTargets.restore(bytes, to: &later, until: .max)
    let isSettled = if case .delivered = later[0].state { true } else { false }
    #expect(isSettled)
  }

  @Test("ends the wait of a device that is gone or named twice by now")
  func endedTargets() {
    for state in [Recipient.State.gone, .sameAs(0)] {
      let bytes = SettledTargets.encode([Recipient(platform: .apns, token: [1], pool: 0, state: .postponed(until: 5))])
      var recipients = [Recipient(platform: .apns, token: [1], pool: -1, state: state)]
      SettledTargets.restore(bytes, to: &recipients, until: .max)
      switch recipients[0].state {
      case .gone, .sameAs: continue
      default: Issue.record("\(state) became \(recipients[0].state)")
      }
    }
  }

  @Test("of a forger never opens a target without a pool")
  func refusedTargets() {
    let refused = Recipient.State.refused(Rejection(.invalidRegistration, "no"))
    for forged in [[3, 0, 0, 0, 0, 0, 1], [1, 0], [0]] as [[UInt8]] {
      var recipients = [Recipient(platform: .apns, token: [], pool: -1, state: refused)]
      SettledTargets.restore(forged, to: &recipients, until: .max)
      guard case .refused = recipients[0].state else {
        Issue.record("took \(forged)")
        return
      }
    }
  }

  @Test(
    "ignores a record that does not fit the request", arguments: [[], [9], [1, 200], [2, 250], [3, 0], [0, 0]] as [[UInt8]])
  func misfit(_ bytes: [UInt8]) {
    var recipients = [Self.recipient(.waiting)]
    SettledTargets.restore(bytes, to: &recipients, until: .max)
    guard case .waiting = recipients[0].state else {
      Issue.record("took \(bytes)")
      return
    }
  }
}
