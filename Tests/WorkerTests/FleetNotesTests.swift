import AMQP
import Broker
import Testing
import Wire

@testable import Delivery

@Suite("What workers note on messages")
struct FleetNotesTests {
  private static let now: Int64 = 1_800_000_000_000
  private static let fourWeeks: Int64 = 28 * 86_400_000
  private let reader = NoteReader(prefix: "push")

  private func headers(version: UInt8? = nil, form: Int64? = nil, deadline: Int64 = now + 1) -> FieldTable {
    var headers = FieldTable()
    var random = RandomSource()
    PageTicket(campaign: [1], number: 3, after: 1, upTo: 9, deadline: deadline, using: &random).append(to: &headers)
    if let version, let bytes = headers.string(PageTicket.header) {
      headers = [PageTicket.header: .string([version] + bytes.dropFirst())]
    }
    RetryRecord(attempts: 4, round: 5, deadline: deadline, error: .unavailable, reason: "", status: nil, settled: nil).append(
      to: &headers)
    if let form { headers.append("x-push-retry-form", .integer(form)) }
    return headers
  }

  private func read(_ headers: FieldTable, by exchange: String, _ queue: WorkQueue) -> String {
    var properties = BasicProperties()
    properties.headers = headers
    switch reader.notes(on: properties, exchange: Array(exchange.utf8), queue: queue, at: Self.now) {
    case .none: return "none"
    case .newer: return "newer"
    case .refused(let rejection): return rejection.reason
    case .notes(let page, let retry):
      let possible = 0...Self.now + Self.fourWeeks
      #expect(possible.contains(page?.deadline ?? 0) && possible.contains(retry?.deadline ?? 0))
      return [page == nil ? nil : "page", retry == nil ? nil : "retry"].compactMap { $0 }.joined(separator: " ")
    }
  }

  @Test("can't be written by a producer, whatever the headers are")
  func producers() {
    for exchange in ["push.send", "", "push.events", "other.return", "push.returned"] {
      for table in [headers(), headers(version: 4), headers(version: 0), headers(form: 2)] {
        for queue in [WorkQueue.sendHigh, .sendNormal] { #expect(read(table, by: exchange, queue) == "none", "\(exchange)") }
        #expect(read(table, by: exchange, .fanoutHigh).contains("fleet's own exchanges only"), "\(exchange)")
      }
    }
    #expect(read(headers(), by: "push.fanout", .sendNormal) == "none")
  }

  @Test("a page's ticket is valid on a fan-out queue, a retry record only on a message from the ladder")
  func workers() {
    for queue in [WorkQueue.fanoutHigh, .fanoutNormal] {
      #expect(read(headers(), by: "push.fanout", queue) == "page")
      #expect(read(headers(), by: "push.return", queue) == "page retry")
      // From the quarantine.
      #expect(read(headers(), by: "push.retry", queue) == "page retry")
    }
    // A small audience is sent within its request.
    #expect(read(headers(), by: "push.return", .sendNormal) == "page retry")
    #expect(read(FieldTable(), by: "push.return", .sendNormal) == "")
  }

  @Test("a newer form is left to a newer worker; an impossible form is refused, not read as a new request")
  func forms() {
    for exchange in ["push.fanout", "push.return"] {
      #expect(read(headers(version: 4), by: exchange, .fanoutNormal) == "newer")
      #expect(read(headers(version: 1), by: exchange, .fanoutNormal).contains("not a page's ticket"))
      #expect(read(FieldTable(), by: exchange, .fanoutNormal).contains("missing"))
      #expect(read([PageTicket.header: .integer(7)], by: exchange, .fanoutNormal).contains("not a page's ticket"))
    }
    #expect(read(headers(form: 2), by: "push.return", .sendNormal) == "newer")
    #expect(read(["x-push-retry-attempts": .integer(1)], by: "push.return", .sendNormal).contains("not what a worker writes"))
  }

  @Test("extend no message's life beyond four weeks")
  func bounded() {
    #expect(read(headers(deadline: .max), by: "push.return", .fanoutNormal) == "page retry")
    #expect(read(headers(deadline: .min), by: "push.return", .fanoutNormal) == "page retry")
  }

  @Test("unreadable headers are refused on every queue, because one of them may choose the sender's credential")
  func unreadable() {
    var properties = BasicProperties()
    properties.hasUnreadableHeaders = true
    for queue in WorkQueue.allCases {
      for exchange in ["push.send", "push.fanout", "push.return"] {
        guard
          case .refused(let rejection) = reader.notes(
            on: properties, exchange: Array(exchange.utf8), queue: queue, at: Self.now)
        else {
          Issue.record("taken")
          return
        }
        #expect(rejection.code == .invalidParameters && rejection.reason.hasPrefix("headers: "))
      }
    }
  }
}
