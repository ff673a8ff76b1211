import AMQP
import Broker
import Foundation
import Testing

@testable import Delivery

@Suite("Messages in a newer worker's form")
struct NewerNotesTests {
  private static let now = Int64(Date().timeIntervalSince1970 * 1000)

  /// The publications of a worker for a message that is back from the ladder.
  private func publications(_ queue: WorkQueue, _ headers: FieldTable) throws -> [Publication] {
    let worker = try FanoutModel.Worker(.sqlite(path: "/nonexistent/registry.db"), 0)
    var message = FanoutModel.broadcast("b")
    message.exchange = "push.return"
    message.queue = queue
    message.properties.headers = headers
    message.properties.expiration = Array("5".utf8)
    worker.accept(message)
    worker.run()
    let publications = worker.publications.compactMap { _ in worker.arrive() }
    #expect(!worker.held.isEmpty, "acknowledged before it was safe elsewhere")
    for _ in publications { worker.confirm() }
    #expect(worker.held.isEmpty)
    worker.die()
    return publications
  }

  static let notes: [(WorkQueue, FieldTable)] = [
    (
      .fanoutHigh, [PageTicket.header: .string([4, 200, 7]), "x-push-retry-attempts": .integer(4), "traceparent": .text("00")]
    ),
    (.sendNormal, ["x-push-retry-form": .integer(2), "x-push-retry-tries": .integer(9), "x-push-sender": .text("1001")]),
  ]

  @Test("go round on the ladder with unchanged headers and body, without other effects", arguments: [0, 1])
  func aside(_ index: Int) throws {
    let start = Self.now
    let (queue, notes) = Self.notes[index]
    var headers = notes
    headers.append("x-death", .array([]))
    headers.append("x-push-origin", .text("stale"))
    let all = try publications(queue, headers)
    let aside = try #require(all.first)
    #expect(all.count == 1 && aside.kind == .retry && aside.exchange == Array("push.retry".utf8))
    #expect(aside.routingKey == Array("5m".utf8) && aside.body == FanoutModel.broadcast("b").body)
    #expect(aside.properties.messageID == Array("b".utf8) && aside.properties.expiration == nil)
    for (key, value) in notes.entries { #expect(aside.properties.headers[String(decoding: key, as: UTF8.self)] == value) }
    #expect(aside.properties.headers["x-death"] == nil && aside.properties.headers["x-push-origin"] == .text(queue.origin))
    #expect(aside.properties.headers.entries.count == notes.entries.count + 2)
    guard case .integer(let since)? = aside.properties.headers[OutcomePublications.asideSince] else { throw Missing() }
    #expect(since >= start)
  }

  @Test("become dead letters after four weeks, and not before", arguments: [0, 1])
  func end(_ index: Int) throws {
    let (queue, notes) = Self.notes[index]
    for (days, kind) in [(27, Publication.Kind.retry), (29, .deadLetter)] as [(Int64, Publication.Kind)] {
      var headers = notes
      headers.append(OutcomePublications.asideSince, .integer(Self.now - days * 86_400_000))
      let all = try publications(queue, headers).filter { $0.kind != .result }
      #expect(all.count == 1 && all.first?.kind == kind, "\(days)")
      guard kind == .deadLetter else { continue }
      #expect(all.first?.properties.headers["x-push-error"] == .text("Unavailable"))
      #expect(all.first?.properties.headers[PageTicket.header] == notes[PageTicket.header])
      #expect(all.first?.properties.headers["x-push-origin"] == .text(queue.origin))
    }
  }

  private struct Missing: Error {}
}
