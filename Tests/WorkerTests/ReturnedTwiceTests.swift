import AMQP
import Testing

@testable import Worker

@Suite("What has come back from workers twice")
struct ReturnedTwiceTests {
  private func worker() throws -> FanoutModel.Worker { try FanoutModel.Worker("sqlite:/nonexistent/registry.db", 0) }

  private func returned(_ headers: FieldTable = FieldTable()) -> FanoutModel.Message {
    var message = FanoutModel.broadcast("b")
    message.isRedelivered = true
    message.properties.headers = headers
    message.properties.headers.append("x-delivery-count", .integer(2))
    return message
  }

  @Test("goes to the quarantine as it came, and is acknowledged when it is there")
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

  @Test("with headers that can't be read it is refused: the copy would have lost them, and with them its sender")
  func unreadable() throws {
    let worker = try worker()
    var message = returned()
    message.properties.hasUnreadableHeaders = true
    worker.accept(message)
    let publications = worker.publications.compactMap { _ in worker.arrive() }
    #expect(publications.map(\.kind) == [.deadLetter, .result])
    #expect(publications.first?.properties.headers["x-push-reason"] == .text("headers: malformed, or nested too deep"))
  }
}
