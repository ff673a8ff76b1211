import AMQP
import Reactor
import TestSupport
import Testing

@Suite("Direct reply-to", .serialized)
struct DirectReplyTests {
  @Test("an answer comes back on the connection that asked, cut at the limit, and returned messages come between")
  func answers() throws {
    let clients = try LiveClients(try Broker.shared.uri)
    let queue = try clients.makeQueue("questions")
    try clients.consume([.init(queue: queue, prefetch: 10)])
    let recorder = PublisherRecorder()
    let asking = Publisher(settings: clients.settings, maximumReply: 300_000, handler: recorder)
    clients.connect(asking)
    try clients.require("a ready publisher") { recorder.isReady }
    var question = properties(id: "m")
    question.replyTo = Publisher.replyTo
    question.correlationID = bytes("7")
    for tag in 1...3 {
      asking.publish(exchange: [], routingKey: bytes(queue), properties: question, body: bytes("?"), tag: tag)
      asking.publish(exchange: [], routingKey: bytes("nobody"), properties: properties(), body: bytes("x"), tag: 10 + tag)
    }
    try clients.require("questions") { clients.consumed.deliveries.count == 3 }
    let place = try #require(clients.consumed.deliveries[0].properties.replyTo)
    #expect(place.starts(with: bytes("amq.rabbitmq.reply-to.")))
    let large = [UInt8](repeating: 7, count: 500_000)
    for (tag, body) in [bytes("!"), [], large].enumerated() {
      clients.publish("", String(decoding: place, as: UTF8.self), properties(id: "answer"), body, tag: tag)
    }
    try clients.require("answers") { recorder.replies.count == 3 }
    #expect(recorder.replies[0].body == bytes("!") && recorder.replies[0].properties.messageID == bytes("answer"))
    #expect(recorder.replies[1].body.isEmpty && !recorder.replies[1].isTruncated)
    #expect(recorder.replies[2].body.count == 300_000 && recorder.replies[2].isTruncated)
    #expect(recorder.confirmed.sorted() == [1, 2, 3] && recorder.failed.sorted() == [11, 12, 13])
    // The place is gone with the connection.
    asking.close()
    try clients.require("the end") { recorder.end != nil }
    clients.publish("", String(decoding: place, as: UTF8.self), properties(), bytes("late"), tag: 20)
    try clients.require("an end of it") { clients.published.failed.contains(20) || clients.published.confirmed.contains(20) }
    #expect(recorder.replies.count == 3)
    try clients.close()
  }
}
