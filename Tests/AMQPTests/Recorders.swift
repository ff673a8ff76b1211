@testable import AMQP

/// Writes down what a consumer reports; acknowledges at once when asked to.
final class ConsumerRecorder: ConsumerHandler {
  enum Event: Equatable {
    case ready
    case cancelled(Int)
    case channelLost(ConnectionEnd)
    case ended(ConnectionEnd)
  }

  var events: [Event] = []
  var deliveries: [Delivery] = []
  weak var acknowledging: Consumer?

  func ready(_ consumer: Consumer) { events.append(.ready) }
  func delivered(_ delivery: Delivery) {
    deliveries.append(delivery)
    acknowledging?.acknowledge(delivery.token)
  }
  func cancelled(queue: Int) { events.append(.cancelled(queue)) }
  func channelLost(_ reason: ConnectionEnd) { events.append(.channelLost(reason)) }
  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) { events.append(.ended(reason)) }
}

/// Writes down what a publisher reports.
final class PublisherRecorder: PublisherHandler {
  enum Event: Equatable {
    case ready
    case confirmed(Int)
    case failed(Int, PublishFailure)
    case blocked(String)
    case unblocked
    case ended(ConnectionEnd)
  }

  var events: [Event] = []
  var confirmedCount = 0
  var replies: [Delivery] = []

  var confirmed: [Int] { events.compactMap { if case .confirmed(let tag) = $0 { tag } else { nil } } }
  var failed: [Int] { events.compactMap { if case .failed(let tag, _) = $0 { tag } else { nil } } }
  var end: ConnectionEnd? { if case .ended(let end)? = events.last { end } else { nil } }
  var isReady: Bool { events.contains(.ready) }

  func ready(_ publisher: Publisher) { events.append(.ready) }
  func confirmed(_ tag: Int) {
    confirmedCount += 1
    events.append(.confirmed(tag))
  }
  func failed(_ tag: Int, _ failure: PublishFailure) { events.append(.failed(tag, failure)) }
  func blocked(_ publisher: Publisher, reason: String) { events.append(.blocked(reason)) }
  func unblocked(_ publisher: Publisher) { events.append(.unblocked) }
  func replied(_ publisher: Publisher, _ reply: consuming Delivery) { replies.append(reply) }
  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) { events.append(.ended(reason)) }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func properties(id: String? = nil, headers: FieldTable = FieldTable()) -> BasicProperties {
  var properties = BasicProperties()
  properties.messageID = id.map(bytes)
  properties.headers = headers
  properties.deliveryMode = 2
  return properties
}

extension Consumer {
  /// No subscription is consumed: no delivery follows.
}
