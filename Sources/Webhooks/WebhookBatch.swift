import AMQP
import PushCore
import Wire

/// An event of a webhook's queue, as it is posted.
struct WebhookEvent {
  private(set) var json: [UInt8]
  let token: DeliveryToken
  private let head: [UInt8]
  private let bytes: Int

  init(_ delivery: Delivery) {
    let key = String(decoding: delivery.routingKey, as: UTF8.self)
    let parts = key.split(separator: ".", maxSplits: 1)
    let name = WebhookBatch.name(delivery.routingKey + (delivery.properties.messageID ?? []) + [0] + delivery.body)
    let head: JSONObject = [
      "id": "evt_" + name, "kind": parts.first.map(String.init), "app": parts.count > 1 ? String(parts[1]) : nil,
      "message_id": delivery.properties.messageID, "correlation_id": delivery.properties.correlationID,
    ]
    let isJSON = (try? JSONDocument(delivery.body, limits: JSONLimits(bytes: WebhookSender.longestEvent))) != nil
    let content: JSONObject =
      isJSON ? ["event": JSONRaw(delivery.body)] : ["text": String(decoding: delivery.body, as: UTF8.self)]
    json = (head + content).line
    self.head = head.line
    bytes = delivery.body.count
    token = delivery.token
  }

  /// Leaves out the content, which is too large for the receiver.
  /// - Returns: false if it has been left out before.
  mutating func shorten() -> Bool {
    let short = Array(head.dropLast()) + Array(",\"left_out_bytes\":\(bytes)}".utf8)
    guard json != short else { return false }
    json = short
    return true
  }
}

/// Events that are posted together. A repeated call has the same id and body. An event has the same id in each call.
struct WebhookBatch {
  let id: String
  let body: [UInt8]
  let events: [WebhookEvent]

  /// - Parameter now: Unix milliseconds.
  init(_ events: [WebhookEvent], now: Int64) {
    self.events = events
    let array = JSONObjectWriter.array(events.map(\.json))
    id = "msg_" + Self.name(array)
    let data: JSONObject = ["events": JSONRaw(array)]
    body = (["type": "pushfleet.events", "timestamp": Timestamp.text(now), "data": data] as JSONObject).line
  }

  /// The same for the same bytes, also in another process.
  static func name(_ bytes: [UInt8]) -> String {
    String(decoding: Digest.sha256(bytes).prefix(16).hexText, as: UTF8.self)
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

  private var events: [WebhookEvent] = []
  private var bytes = 0
  /// Events of the next call: fewer after the receiver has found a call too large.
  private var most = Self.most

  var count: Int { events.count }
  var isEmpty: Bool { events.isEmpty }
  /// The events fill a call.
  var isFull: Bool { count >= most || bytes >= Self.mostBytes }

  mutating func append(_ event: WebhookEvent) {
    bytes += event.json.count
    events.append(event)
  }

  /// Removes the events of one call, at least one.
  mutating func take() -> [WebhookEvent] {
    var (count, size) = (0, 0)
    while count < min(self.count, most), count == 0 || size + events[count].json.count <= Self.mostBytes {
      size += events[count].json.count
      count += 1
    }
    let taken = Array(events.prefix(count))
    events.removeFirst(count)
    bytes -= size
    return taken
  }

  /// Takes the events of a call back that was too large. The next call has half of them, or the only one without its content.
  /// - Returns: false if the call can't be smaller.
  mutating func makeSmaller(_ batch: WebhookBatch) -> Bool {
    var events = batch.events
    if events.count == 1, !events[0].shorten() { return false }
    most = max(1, events.count / 2)
    self.events = events + self.events
    bytes = self.events.reduce(0) { $0 + $1.json.count }
    return true
  }

  mutating func wasAccepted() { most = min(Self.most, most * 2) }
}
