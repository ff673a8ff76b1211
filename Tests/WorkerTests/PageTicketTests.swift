import AMQP
import Testing

@testable import Worker

@Suite("A page's ticket")
struct PageTicketTests {
  private let fresh = PageTicket(campaign: Array("c-1".utf8), number: 3, after: 17, upTo: .max, deadline: 1_800_000_000_000)

  private func carried(_ ticket: PageTicket) -> PageTicket? {
    var headers = FieldTable()
    headers.append("traceparent", .text("00-1-2-01"))
    ticket.append(to: &headers)
    return PageTicket(headers)
  }

  @Test("comes back from a header as it was, with and without what is left of a page")
  func roundTrip() {
    #expect(carried(fresh) == fresh)
    var begun = fresh
    begun.isLast = true
    begun.sent = 990
    begun.failed = 8
    begun.pending = [.init(id: 3, salt: -1), .init(id: .max, salt: .min)]
    #expect(carried(begun) == begun)
    begun.pending = []
    #expect(carried(begun) == begun)
    #expect(carried(begun) != fresh)
  }

  @Test("the page after it begins at the cursor and is another copy each time it is made")
  func next() {
    let next = fresh.next(after: 900)
    #expect(next.number == 4 && next.after == 900 && next.upTo == fresh.upTo && next.deadline == fresh.deadline)
    #expect(next.copy != fresh.next(after: 900).copy)
  }

  @Test("cut or unknown forms are no tickets, at any length")
  func malformed() throws {
    var ticket = fresh
    ticket.pending = [.init(id: 1, salt: 2)]
    var headers = FieldTable()
    ticket.append(to: &headers)
    let bytes = try #require(headers.string(PageTicket.header))
    for length in 0..<bytes.count - 16 {
      let cut: FieldTable = [PageTicket.header: .string(Array(bytes.prefix(length)))]
      #expect(PageTicket(cut) == nil, "\(length)")
    }
    let newer: FieldTable = [PageTicket.header: .string([9] + bytes.dropFirst())]
    #expect(PageTicket(newer) == nil)
    #expect(PageTicket([PageTicket.header: .integer(2)]) == nil)
    #expect(PageTicket(FieldTable()) == nil)
  }

  @Test("the largest page's rest fits a frame")
  func size() throws {
    var ticket = fresh
    ticket.pending = (0..<5_000).map { .init(id: $0, salt: $0) }
    var headers = FieldTable()
    ticket.append(to: &headers)
    #expect(headers.encoded.count < 96 * 1024)
  }
}
