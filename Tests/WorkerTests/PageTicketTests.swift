import AMQP
import Testing
import Wire

@testable import Delivery
@testable import PushCore

@Suite("A page's ticket")
struct PageTicketTests {
  private let fresh: PageTicket

  init() {
    var random = RandomSource(seed: 1)
    fresh = PageTicket(
      campaign: Array("c-1".utf8), number: 3, after: 17, upTo: .max, deadline: 1_800_000_000_000, using: &random)
  }

  private func carried(_ ticket: PageTicket) -> PageTicket? {
    var headers = FieldTable()
    headers.append("traceparent", .text("00-1-2-01"))
    ticket.append(to: &headers)
    guard case .ticket(let carried) = PageTicket.read(headers) else { return nil }
    return carried
  }

  @Test("survives its header form, with and without pending devices")
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
    begun.isOfSeveralChains = true
    #expect(carried(begun) == begun)
    #expect(carried(begun) != fresh)
    begun.failures = [.init(id: 9, salt: 1), .init(id: 10, salt: -7)]
    #expect(carried(begun) == begun)
    begun.hasWaited = true
    #expect(carried(begun) == begun && carried(begun)?.hasWaited == true)
    begun.failureCounts = [
      .init(platform: .apns, error: .messageTooBig, devices: 7), .init(platform: nil, error: .notRegistered, devices: 1),
    ]
    #expect(carried(begun) == begun && carried(begun)?.failureCounts.count == 2)
  }

  @Test("gives the next page the cursor, and each time a new copy number")
  func next() {
    var random = RandomSource()
    let next = fresh.next(after: 900, using: &random)
    #expect(next.number == 4 && next.after == 900 && next.upTo == fresh.upTo && next.deadline == fresh.deadline)
    #expect(!next.isOfSeveralChains)
    var ofSeveral = fresh
    ofSeveral.isOfSeveralChains = true
    #expect(ofSeveral.next(after: 900, using: &random).isOfSeveralChains)
    #expect(next.copy != fresh.next(after: 900, using: &random).copy)
  }

  @Test("has the form of earlier builds only if its campaign has one chain", arguments: [false, true])
  func version(_ isOfSeveralChains: Bool) throws {
    var ticket = fresh
    ticket.isOfSeveralChains = isOfSeveralChains
    var headers = FieldTable()
    ticket.append(to: &headers)
    #expect(headers.entries.count == 1)
    let form: [UInt8] = [isOfSeveralChains ? 3 : 2, 0]
    let numbers = [3, ticket.copy, 17, .max, 1_800_000_000_000, 0, 0].flatMap { (value: Int64) in
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> $0) }
    }
    #expect(headers.string(PageTicket.header) == form + numbers + [3] + Array("c-1".utf8))
  }

  @Test("is unreadable if cut or lengthened at any place; a later version is recognised")
  func malformed() throws {
    var ticket = fresh
    ticket.pending = [.init(id: 1, salt: 2)]
    var headers = FieldTable()
    ticket.append(to: &headers)
    let bytes = try #require(headers.string(PageTicket.header))
    func read(_ bytes: some Sequence<UInt8>) -> PageTicket.Reading {
      PageTicket.read([PageTicket.header: .string(Array(bytes))])
    }
    // Without its only device it is complete again.
    for length in 0..<bytes.count where length != bytes.count - 16 {
      #expect(read(bytes.prefix(length)) == .unreadable, "\(length)")
    }
    for rest in 1..<16 { #expect(read(bytes + Array(repeating: 0, count: rest)) == .unreadable, "\(rest)") }
    for version in 0...UInt8.max where !(2...3).contains(version) {
      #expect(read([version] + bytes.dropFirst()) == (version > 3 ? .newer : .unreadable), "\(version)")
    }
    #expect(bytes[0] == 2 && read([4]) == .newer)
    #expect(PageTicket.read([PageTicket.header: .integer(2)]) == .unreadable)
    #expect(PageTicket.read(FieldTable()) == .absent)
  }

  @Test("with the largest number of pending devices fits a frame")
  func size() throws {
    var ticket = fresh
    ticket.pending = (0..<5_000).map { .init(id: $0, salt: $0) }
    var headers = FieldTable()
    ticket.append(to: &headers)
    #expect(headers.encoded.count < 96 * 1024)
  }
}
