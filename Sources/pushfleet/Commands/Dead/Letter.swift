import AMQP
import Broker
import PushCore

struct Letter {
  let delivery: Delivery
  let source: LetterSource
  let app: String?
  /// The error code; nil if the broker gave the message up.
  private(set) var error: String?
  let reason: String
  private(set) var status: Int64?
  private(set) var attempts: Int64?
  /// When the message was given up, or a held request first put off, in Unix milliseconds; nil if unknown.
  let failedAt: Int64?
  /// The queue that the letter came from, without prefix; nil if it never was in one.
  private(set) var origin: String?

  init(_ delivery: Delivery, _ topology: Topology) {
    self.delivery = delivery
    let properties = delivery.properties
    let headers = properties.headers
    source = LetterSource(of: delivery, topology)
    app = properties.appID.map { String(printing: $0) }
    if delivery.exchange.elementsEqual(topology.holdExchange.utf8) {
      error = Self.text(headers, "x-push-retry-error")
      reason = Self.text(headers, "x-push-retry-reason") ?? ""
      failedAt = Self.number(headers, NoteReader.putOffHeader) ?? Self.published(properties)
      origin = Self.text(headers, Topology.originHeader)
      return
    }
    switch source {
    case .worker:
      error = Self.text(headers, "x-push-error")
      reason = Self.text(headers, "x-push-reason") ?? ""
      status = Self.number(headers, "x-push-status")
      attempts = Self.number(headers, "x-push-attempts")
      failedAt = headers.string("x-push-failed-at").flatMap { Timestamp.milliseconds(of: $0) } ?? Self.published(properties)
      origin = Self.text(headers, Topology.originHeader)
    case .broker(let queue, let why):
      reason = "given up by the broker: \(why.printable)"
      failedAt = Self.milliseconds(LetterSource.died(properties)) ?? Self.published(properties)
      origin = queue.printable
    case .stray(let exchange, let key):
      reason = "published to \(exchange.printable) with the routing key \"\(key.printable)\", which leads nowhere"
      failedAt = Self.published(properties)
    }
  }

  /// Bytes. Longer than any text of a worker; bounds the texts by which letters are grouped.
  private static let longestText = 1_024

  private static func text(_ headers: FieldTable, _ name: String) -> String? {
    headers.string(name).map { String(printing: Array($0.prefix(longestText))) }
  }

  private static func number(_ headers: FieldTable, _ name: String) -> Int64? {
    if case .integer(let number)? = headers[name] { number } else { nil }
  }

  private static func published(_ properties: BasicProperties) -> Int64? { milliseconds(properties.timestamp) }

  private static func milliseconds(_ seconds: UInt64?) -> Int64? {
    seconds.flatMap { Int64(exactly: $0) }.flatMap { $0.multipliedReportingOverflow(by: 1_000).overflow ? nil : $0 * 1_000 }
  }

  var messageID: String? { delivery.properties.messageID.map { String(printing: $0) } }
}
