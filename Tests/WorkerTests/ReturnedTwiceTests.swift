import AMQP
import Testing

@testable import Delivery

@Suite("A request that came back from workers twice")
struct ReturnedTwiceTests {
  private func worker() throws -> FanoutModel.Worker { try FanoutModel.Worker(.sqlite(path: "/nonexistent/registry.db"), 0) }

  private func returned(_ headers: FieldTable = FieldTable()) -> FanoutModel.Message {
    var message = FanoutModel.broadcast("b")
    message.isRedelivered = true
    message.properties.headers = headers
    message.properties.headers.append("x-delivery-count", .integer(2))
    return message
  }

  @Test("goes unchanged to the quarantine, and is acknowledged when that is confirmed")
  func quarantined() throws {
    let worker = try worker()
    worker.accept(returned(["x-push-sender": .text("1001")]))
    let publication = try #require(worker.arrive())
    #expect(
      publication.routingKey == Array("quarantine".utf8) && publication.properties.headers["x-push-sender"] == .text("1001"))
    #expect(worker.publications.count == 1 && !worker.held.isEmpty)
    worker.confirm()
    #expect(worker.held.isEmpty)
  }

  @Test("with unreadable headers is refused: the copy would lose them, and with them its sender")
  func unreadable() throws {
    let worker = try worker()
    var message = returned()
    message.properties.hasUnreadableHeaders = true
    worker.accept(message)
    let publications = worker.publications.compactMap { _ in worker.arrive() }
    #expect(publications.map(\.kind) == [.deadLetter, .result])
    #expect(publications.first?.properties.headers["x-push-reason"] == .text("headers: malformed, or nested too deep"))
  }

  @Test("with too many headers is refused, without them")
  func tooManyHeaders() throws {
    let worker = try worker()
    worker.accept(returned(["own": .string([UInt8](repeating: 1, count: 20_000)), "x-push-sender": .text("1001")]))
    #expect(worker.pipeline.backpressure.bodies.total < 10_000)
    let publications = worker.publications.compactMap { _ in worker.arrive() }
    #expect(publications.map(\.kind) == [.deadLetter, .result])
    let headers = try #require(publications.first).properties.headers
    #expect(headers.string("x-push-reason")?.starts(with: "headers: 20".utf8) == true && headers["own"] == nil)
    #expect(headers["x-push-sender"] == .text("1001"))
    worker.confirm()
    worker.confirm()
    #expect(worker.held.isEmpty && worker.pipeline.backpressure.bodies.total == 0)
  }

  private func alone() -> FanoutModel.Message {
    var message = FanoutModel.broadcast("b")
    message.exchange = "push.retry"
    message.body = Array(#"{"to":"\#(String(repeating: "0a", count: 32))"}"#.utf8)
    RetryRecord(
      attempts: 3, round: 4, deadline: .max, error: .unavailable, reason: "", status: nil, settled: nil
    ).append(to: &message.properties.headers)
    message.isAlone = true
    return message
  }

  @Test(
    "counts a loss whenever it comes back from the quarantine, and becomes a dead letter at the fourth"
  )
  func losses() throws {
    var message = alone()
    for loss in 1...3 as ClosedRange<Int64> {
      let worker = try worker()
      message.isRedelivered = true
      message.properties.headers.append("x-delivery-count", .integer(9))
      worker.accept(message)
      let copy = try #require(worker.arrive())
      #expect(copy.routingKey == Array("quarantine".utf8) && copy.body == message.body)
      #expect(copy.properties.headers["x-push-quarantine-losses"] == .integer(loss))
      #expect(copy.properties.headers["x-push-retry-attempts"] == .integer(3))
      worker.confirm()
      #expect(worker.held.isEmpty && worker.publications.isEmpty)
      message.properties = copy.properties
    }
    let worker = try worker()
    message.properties.headers.append("x-delivery-count", .integer(1))
    worker.accept(message)
    let letter = try #require(worker.arrive())
    #expect(letter.routingKey == Array("dead".utf8) && letter.body == message.body)
    #expect(letter.properties.headers.string("x-push-error") == Array("InternalServerError".utf8))
    #expect(letter.properties.headers.string("x-push-reason")?.starts(with: "poison".utf8) == true)
    // With the notes of earlier rounds, whose outcomes are unknown here.
    #expect(letter.properties.headers["x-push-retry-attempts"] == .integer(3))
    #expect(letter.properties.headers["x-push-quarantine-losses"] == nil)
    worker.confirm()
    #expect(worker.held.isEmpty && worker.publications.isEmpty && worker.pipeline.isIdle)
  }

  @Test("that is still in hand here, or was when the channel was lost, counts no loss")
  func stillHere() throws {
    let worker = try worker()
    var message = alone()
    worker.accept(message)
    let entry = try #require(worker.pipeline.table.entries.first)
    entry.recipients[0].state = .sent
    entry.ledger.pushed()
    message.isRedelivered = true
    message.properties.headers.append("x-delivery-count", .integer(1))
    worker.accept(message)
    #expect(worker.publications.isEmpty && worker.held.count == 2)
    worker.loseChannel()
    worker.accept(message)
    #expect(worker.publications.isEmpty && worker.held.count == 1 && !entry.ledger.isOrphan)
  }

  @Test("goes back to the quarantine as a new message with its notes if the worker stops before it begins")
  func stopped() throws {
    let worker = try worker()
    let message = alone()
    worker.accept(message)
    #expect(worker.publications.isEmpty)
    worker.pipeline.dispatcher.isDraining = true
    worker.pipeline.returnToQuarantine()
    worker.pipeline.returnToQuarantine()
    let publications = worker.publications.compactMap { _ in worker.arrive() }
    let copy = try #require(publications.first)
    #expect(publications.count == 1 && copy.routingKey == Array("quarantine".utf8) && copy.body == message.body)
    #expect(
      copy.properties.headers["x-delivery-count"] == nil && copy.properties.headers["x-push-retry-attempts"] == .integer(3))
    #expect(copy.properties.headers["x-push-origin"] == .text("send.normal") && !worker.held.isEmpty)
    worker.confirm()
    #expect(worker.held.isEmpty && worker.pipeline.isIdle)
  }

  @Test("is waited for if it is with the provider when the worker stops")
  func stoppedUnderWay() throws {
    let worker = try worker()
    worker.accept(alone())
    let entry = try #require(worker.pipeline.table.entries.first)
    entry.recipients[0].state = .sent
    entry.ledger.pushed()
    worker.pipeline.returnToQuarantine()
    #expect(worker.publications.isEmpty && !worker.held.isEmpty)
  }
}
