import AMQP
import Broker
import Testing

@Suite("A request's message_id")
struct MessageIDTests {
  private func accept(_ id: String) throws -> (outcomes: [Publication], isInHand: Bool) {
    let worker = try FanoutModel.Worker(.sqlite(path: "/nonexistent/registry.db"), 0)
    var message = FanoutModel.broadcast("b")
    message.properties.messageID = Array(id.utf8)
    message.body = Array(#"{"to":"\#(String(repeating: "0a", count: 32))"}"#.utf8)
    worker.accept(message)
    return (worker.publications.compactMap { _ in worker.arrive() }, worker.publications.isEmpty)
  }

  @Test(
    "with control or bidirectional characters makes a dead letter, under the original id",
    arguments: ["\0", "\r\n", "\u{1B}[31m", "\u{7F}", "\u{85}", "\u{2028}", "\u{202E}", "\u{2066}", "\u{200F}", "\u{FEFF}"])
  func refused(_ part: String) throws {
    let id = "m\(part)1"
    let outcomes = try accept(id).outcomes
    #expect(outcomes.map(\.kind) == [.deadLetter, .result])
    let headers = try #require(outcomes.first).properties.headers
    #expect(headers["x-push-error"] == .text("InvalidParameters"))
    #expect(headers["x-push-reason"] == .text("message_id: a control character in it"))
    #expect(outcomes.allSatisfy { $0.properties.messageID == Array(id.utf8) })
  }

  @Test("may be any other text", arguments: ["m-1", "", "雑談 é", #"a"b\{}"#, "\u{1F468}\u{200D}\u{1F469}"])
  func taken(_ id: String) throws {
    #expect(try accept(id).outcomes.isEmpty)
  }
}
