import AMQP
import PushCore
import Wire

/// Events that are posted together. A repetition has the same id and body, so that a receiver recognises it.
struct WebhookBatch {
  let id: String
  let body: [UInt8]
  let tokens: [DeliveryToken]

  /// - Parameter now: Unix milliseconds.
  init(_ deliveries: [Delivery], now: Int64) {
    var events: [UInt8] = []
    for delivery in deliveries {
      if !events.isEmpty { events.append(UInt8(ascii: ",")) }
      events += Self.event(delivery)
    }
    // Made of the events, so that the id stays the same when another process sends them again.
    let digest = Digest.sha256(events)
    id = "msg_" + digest.prefix(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    var object = JSONObjectWriter()
    object.set("type", "pushfleet.events")
    object.set("timestamp", time: now)
    object.set("data", object: { $0.set("events", raw: [UInt8(ascii: "[")] + events + [UInt8(ascii: "]")]) })
    body = object.closed()
    tokens = deliveries.map(\.token)
  }

  private static func event(_ delivery: Delivery) -> [UInt8] {
    let key = String(decoding: delivery.routingKey, as: UTF8.self)
    let parts = key.split(separator: ".", maxSplits: 1)
    var object = JSONObjectWriter()
    object.set("kind", parts.first.map(String.init))
    object.set("app", parts.count > 1 ? String(parts[1]) : nil)
    object.set("message_id", delivery.properties.messageID)
    object.set("correlation_id", delivery.properties.correlationID)
    if (try? JSONDocument(delivery.body, limits: JSONLimits(bytes: WebhookSender.longestEvent))) != nil {
      object.set("event", raw: delivery.body)
    } else {
      object.set("text", String(decoding: delivery.body, as: UTF8.self))
    }
    return object.closed()
  }

  /// The headers of Standard Webhooks: https://www.standardwebhooks.com.
  /// - Parameters:
  ///   - secrets: at least one; each signs.
  ///   - now: Unix seconds of this attempt.
  func headers(_ secrets: [[UInt8]], now: Int64) -> [(name: String, value: String)] {
    let signed = Array("\(id).\(now).".utf8) + body
    let signatures = secrets.map {
      "v1," + String(decoding: Base64.encode(Digest.authenticator(of: signed, key: $0)), as: UTF8.self)
    }
    return [
      ("Content-Type", "application/json"), ("webhook-id", id), ("webhook-timestamp", "\(now)"),
      ("webhook-signature", signatures.joined(separator: " ")),
    ]
  }
}

/// Events that wait for a call.
struct GatheredEvents {
  /// Events and bytes of one call.
  static let most = 500
  private static let mostBytes = 1 << 20

  private var deliveries: [Delivery] = []
  private var bytes = 0

  var count: Int { deliveries.count }
  var isEmpty: Bool { deliveries.isEmpty }
  /// The events fill a call.
  var isFull: Bool { count >= Self.most || bytes >= Self.mostBytes }

  mutating func append(_ delivery: Delivery) {
    bytes += delivery.body.count
    deliveries.append(delivery)
  }

  /// Removes the events of one call, at least one.
  mutating func take() -> [Delivery] {
    var (count, size) = (0, 0)
    while count < min(self.count, Self.most), count == 0 || size + deliveries[count].body.count <= Self.mostBytes {
      size += deliveries[count].body.count
      count += 1
    }
    let taken = Array(deliveries.prefix(count))
    deliveries.removeFirst(count)
    bytes -= size
    return taken
  }
}
