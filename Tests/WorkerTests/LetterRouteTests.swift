import AMQP
import Broker
import Testing

@Suite("Routes of dead letters")
struct LetterRouteTests {
  private let topology = Topology(ladder: [])

  private func letter(
    by exchange: String = "push.dead", key: String = "dead", user: String? = nil, _ headers: FieldTable
  ) -> Delivery {
    var delivery = Delivery()
    delivery.exchange = Array(exchange.utf8)
    delivery.routingKey = Array(key.utf8)
    delivery.properties.messageID = Array("m".utf8)
    delivery.properties.timestamp = 5
    delivery.properties.userID = user.map { Array($0.utf8) }
    delivery.properties.headers = headers
    return delivery
  }

  /// The broker's form, with the latest first.
  private func death(_ queues: String...) -> FieldValue {
    .array(queues.map { .table(["queue": .text($0), "reason": .text("delivery_limit"), "time": .timestamp(7)]) })
  }

  private func route(_ letter: Delivery) -> (to: String, headers: [String])? {
    guard let route = try? LetterRoute(of: letter, topology) else { return nil }
    #expect(route.properties.userID == nil && route.properties.timestamp == 5)
    let door = "\(String(decoding: route.exchange, as: UTF8.self))/\(String(decoding: route.routingKey, as: UTF8.self))"
    return (door + " " + route.queue, route.properties.headers.entries.map { String(decoding: $0.key, as: UTF8.self) })
  }

  @Test(
    "lead a worker's letter back to its origin, without the letter's headers",
    arguments: ["send.high", "send.normal", "fanout.high", "fanout.normal", "registry", "acks"])
  func workers(origin: String) {
    let found = route(
      letter([
        "x-push-origin": .text(origin), "x-push-page": .text("p"), "x-push-sender": .text("s"), "mine": .integer(1),
        "x-push-error": .text("Unavailable"), "x-push-reason": .text("500"), "x-push-status": .integer(500),
        "x-push-attempts": .integer(3), "x-push-failed-at": .text("now"), "CC": .array([.text("elsewhere")]),
        "x-delivery-count": .integer(2),
      ]))
    #expect(found?.to == "push.return/ \(origin)")
    #expect(found?.headers == ["x-push-origin", "x-push-page", "x-push-sender", "mine"])
  }

  @Test("treat a letter without an origin as a plain request; an unknown queue leads nowhere")
  func withoutOrigin() {
    let found = route(letter(["x-push-error": .text("Unavailable"), "x-push-page": .text("p"), "mine": .integer(1)]))
    #expect(found?.to == "push.send/normal send.normal" && found?.headers == ["mine"])
    #expect(route(letter(["x-push-origin": .text("dead")])) == nil && route(letter(["x-push-origin": .integer(1)])) == nil)
  }

  @Test(
    "lead a letter from a producers' queue back to it, without headers that a producer may have written",
    arguments: [
      ("push.send.high", "push.send/high send.high"), ("push.send.normal", "push.send/normal send.normal"),
      ("push.registry", "push.registry/change registry"), ("push.acks", "push.acks/ack acks"),
      ("push.send.normal.3", "push.send/normal send.normal"), ("push.send.high.15", "push.send/high send.high"),
    ])
  func producers(queue: String, door: String) {
    let forged: FieldTable = [
      "x-death": death(queue, "push.fanout.high"), "x-push-origin": .text("fanout.high"), "x-push-page": .text("p"),
      "x-push-retry-attempts": .integer(1), "x-push-error": .text("Unavailable"), "x-push-producer": .text("root"),
      "x-push-sender": .text("s"), "mine": .bool(true),
    ]
    let found = route(letter(forged))
    #expect(found?.to == door && found?.headers == ["x-push-sender", "mine"])
    // The broker has verified the user, whose rights must be checked.
    let signed = letter(user: "billing", forged)
    let origin = door.split(separator: " ").last ?? ""
    #expect(route(signed)?.to == "push.return/ \(origin)")
    #expect(route(signed)?.headers == ["x-push-sender", "mine", "x-push-producer", "x-push-origin"])
    #expect((try? LetterRoute(of: signed, topology))?.properties.headers["x-push-producer"] == .text("billing"))
  }

  @Test("keep the notes on a letter from a workers' queue")
  func workersQueues() {
    for queue in ["push.retry.1s", "push.quarantine", "push.hold.com.example.app", "push.fanout.high"] {
      let found = route(
        letter(["x-death": death(queue), "x-push-origin": .text("send.high"), "x-push-retry-round": .integer(2)]))
      #expect(found?.to == "push.return/ send.high" && found?.headers == ["x-push-origin", "x-push-retry-round"])
    }
    #expect(
      route(letter(["x-death": death("push.fanout.high"), "x-push-page": .text("p")]))?.to == "push.fanout/high fanout.high")
    #expect(route(letter(["x-death": death("push.feedback")]))?.to == "/push.feedback feedback")
    #expect(
      route(letter(["x-death": death("push.retry.1s")])) == nil && route(letter(["x-death": death("billing.jobs")])) == nil)
    #expect(route(letter(["x-death": death("push.send.normal.x")])) == nil)
  }

  @Test("lead a message with a wrong routing key to the nearest queue")
  func strays() {
    let forged: FieldTable = ["x-push-error": .text("Unavailable"), "x-push-origin": .text("fanout.high")]
    #expect(route(letter(by: "push.send", key: "urgent", forged))?.to == "push.send/normal send.normal")
    #expect(route(letter(by: "push.send", key: "urgent", forged))?.headers == [])
    #expect(route(letter(by: "push.registry", key: "", forged))?.to == "push.registry/change registry")
    #expect(route(letter(by: "push.acks", key: "x", forged))?.to == "push.acks/ack acks")
    #expect(route(letter(by: "push.return", key: "", [:])) == nil)
  }

  @Test("drop a producer's headers beyond the limit and keep the workers' notes")
  func manyHeaders() {
    let own = FieldValue.string([UInt8](repeating: 1, count: 100_000))
    let page: FieldTable = [
      "own": own, "x-push-page": .text("p"), "x-push-sender": .text("s"), "x-push-origin": .text("fanout.high"),
    ]
    #expect(route(letter(page))?.headers == ["x-push-page", "x-push-sender", "x-push-origin"])
    #expect(
      route(letter(by: "push.send", key: "urgent", ["own": own, "x-push-sender": .text("s")]))?.headers == ["x-push-sender"])
    let few = FieldValue.string([UInt8](repeating: 1, count: 16_000))
    #expect(route(letter(by: "push.send", key: "urgent", ["own": few]))?.headers == ["own"])
  }

  @Test("keep a letter that can't be sent unchanged")
  func unreadable() {
    var unreadable = letter(["x-push-origin": .text("send.high")])
    unreadable.properties.hasUnreadableHeaders = true
    #expect(route(unreadable) == nil)
    #expect(route(letter(["x-push-origin": .text("send.high"), "x-push-truncated-from": .integer(1 << 30)])) == nil)
  }
}
