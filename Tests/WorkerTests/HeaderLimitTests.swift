import AMQP
import Broker
import Testing

@testable import Delivery

@Suite("The limit of a message's headers")
struct HeaderLimitTests {
  private static let reader = NoteReader(prefix: "push")

  private func limited(
    _ headers: FieldTable, by exchange: String = "push.send", in queue: WorkQueue? = .sendNormal
  ) -> BasicProperties {
    var delivery = Delivery()
    delivery.exchange = Array(exchange.utf8)
    delivery.properties.headers = headers
    Self.reader.limitHeaders(of: &delivery, queue: queue)
    return delivery.properties
  }

  private func filler(_ count: Int) -> FieldValue { .string([UInt8](repeating: 1, count: count)) }

  @Test("accepts 16 KiB and refuses one byte more, for any header")
  func bounds() {
    for name in ["own", "x-push-retry-settled", "x-death"] {
      for queue in [WorkQueue.sendNormal, nil] {
        let most = 16_384 - (1 + name.utf8.count) - 5
        #expect(limited([name: filler(most)], in: queue).omittedHeaders == 0)
        let refused = limited([name: filler(most + 1)], in: queue)
        #expect(refused.omittedHeaders == 16_385 && refused.headers.isEmpty)
        #expect(NoteReader.refusal(of: refused) == "headers: 16385 bytes, the limit is 16384")
      }
    }
  }

  @Test("keeps a producer's choices on a refused message unless they are too large themselves")
  func choices() {
    let choices: FieldTable = ["x-push-sender": .text("s"), "x-push-environment": .text("sandbox")]
    var headers: FieldTable = ["own": filler(20_000)]
    for (key, value) in choices.entries { headers.append(String(decoding: key, as: UTF8.self), value) }
    #expect(limited(headers).headers == choices)
    #expect(limited(["x-push-sender": filler(20_000)]).headers.isEmpty)
  }

  @Test("is higher for a worker's notes; next to these a producer's headers are dropped, not the message")
  func own() {
    let notes: FieldTable = [
      "x-push-retry-settled": filler(100_000), "traceparent": .text("00-1"), "x-push-sender": .text("s"),
    ]
    for (exchange, queue) in [("push.return", .sendNormal), ("push.fanout", .fanoutHigh), ("push.hold", .sendHigh)]
      as [(String, WorkQueue)]
    {
      #expect(limited(notes, by: exchange, in: queue).headers == notes)
      var many = notes
      many.append("own", filler(20_000))
      let left = limited(many, by: exchange, in: queue)
      #expect(left.headers == ["x-push-retry-settled": filler(100_000), "x-push-sender": .text("s")])
      #expect(left.omittedHeaders == 0)
    }
    #expect(limited(notes, by: "push.fanout").omittedHeaders > 0)
  }

  @Test("lets each publication of a worker fit a frame")
  func fits() {
    var properties = BasicProperties()
    properties.headers.append("own", filler(16_375))
    RetryRecord(
      attempts: 1_000, round: .max, deadline: .max, error: .unavailable, reason: String(repeating: "r", count: 200),
      status: 503,
      settled: [UInt8](repeating: 1, count: 100_000), due: .max,
      arrival: Arrival(published: .max, number: .max), putOffAt: .max
    ).append(to: &properties.headers)
    let long = [UInt8](repeating: 0x61, count: 255)
    properties.contentType = long
    properties.correlationID = long
    properties.replyTo = long
    properties.messageID = long
    properties.type = long
    properties.appID = long
    #expect(properties.encoded.count < 131_072 - 4_096 - 22)
  }
}
