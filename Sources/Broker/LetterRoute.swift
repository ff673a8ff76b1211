import AMQP

/// How a message reached the dead-letter queue, according to facts that the broker vouches for. Names have no fleet prefix.
public enum LetterSource: Equatable, Sendable {
  /// A worker, or an operator's tool, published it there.
  case worker
  /// The broker removed it from a queue because it expired or was returned too often. The queues of a lane have the lane's name.
  case broker(queue: String, reason: String)
  /// It was published with a routing key that matches no queue.
  case stray(exchange: String, key: String)

  public init(of delivery: Delivery, _ topology: Topology) {
    // The broker puts its latest entry first. A publisher may have forged the others.
    if case .array(let deaths)? = delivery.properties.headers[Self.deaths], case .table(let latest)? = deaths.first,
      let queue = latest.string("queue")
    {
      self = .broker(
        queue: Topology.lane(ofQueue: topology.withoutPrefix(queue)),
        reason: latest.string("reason").map { Self.text($0) } ?? "unknown")
    } else if delivery.exchange.isEmpty || delivery.exchange.elementsEqual(topology.deadExchange.utf8) {
      self = .worker
    } else {
      self = .stray(exchange: topology.withoutPrefix(delivery.exchange), key: Self.text(delivery.routingKey))
    }
  }

  static let deaths = "x-death"

  /// When the broker removed it from its queue, in unix seconds.
  public static func died(_ properties: BasicProperties) -> UInt64? {
    guard case .array(let deaths)? = properties.headers[deaths], case .table(let latest)? = deaths.first,
      case .timestamp(let time)? = latest["time"]
    else { return nil }
    return time
  }

  private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

extension Topology {
  func withoutPrefix(_ name: [UInt8]) -> String {
    let start = Array((prefix + ".").utf8)
    return String(decoding: name.starts(with: start) ? name[start.count...] : name[...], as: UTF8.self)
  }
}

/// The route that sends a dead letter back to its origin. Headers of a producer that exceed the limit are removed. A worker's
/// notes are trusted again after the replay. So they are kept only if no producer can have written them: on letters from
/// workers, and on messages that the broker removed from queues to which only workers publish.
public struct LetterRoute: Equatable, Sendable {
  public var exchange: [UInt8]
  public var routingKey: [UInt8]
  public var queue: String
  public var properties: BasicProperties

  public struct Obstacle: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
  }

  public init(of delivery: Delivery, _ topology: Topology) throws(Obstacle) {
    let properties = delivery.properties
    guard !properties.hasUnreadableHeaders else { throw Obstacle(description: "its headers can't be read") }
    guard properties.headers[Self.truncation] == nil else {
      throw Obstacle(description: "its body was cut off by the worker that gave it up: it was too large")
    }
    switch LetterSource(of: delivery, topology) {
    case .worker: try self.init(notedOn: properties, or: Self.usual, topology)
    case .broker(let queue, _): try self.init(from: queue, properties, topology)
    case .stray(Topology.send, _): self.init(producers: Self.usual, properties, topology)
    case .stray(Topology.registryOrigin, _): self.init(producers: Topology.registryOrigin, properties, topology)
    case .stray(Topology.acknowledgementOrigin, _):
      self.init(producers: Topology.acknowledgementOrigin, properties, topology)
    case .stray(let exchange, _):
      throw Obstacle(description: "it came by the exchange \(exchange) but names no queue to return to")
    }
  }

  /// The lane for requests without a known origin. Producers use it by default.
  private static let usual = WorkQueue.sendNormal.origin
  private static let truncation = "x-push-truncated-from"
  private static let ofLetters = ["x-push-error", "x-push-reason", "x-push-status", "x-push-attempts", "x-push-failed-at"]

  private init(from queue: String, _ properties: BasicProperties, _ topology: Topology) throws(Obstacle) {
    switch queue {
    case WorkQueue.sendHigh.origin, WorkQueue.sendNormal.origin, Topology.registryOrigin, Topology.acknowledgementOrigin:
      self.init(producers: queue, properties, topology)
    case WorkQueue.fanoutHigh.origin, WorkQueue.fanoutNormal.origin: try self.init(notedOn: properties, or: queue, topology)
    case Topology.quarantineKey: try self.init(notedOn: properties, or: nil, topology)
    case _ where queue.hasPrefix("retry.") || queue.hasPrefix(Topology.hold + "."):
      try self.init(notedOn: properties, or: nil, topology)
    case "feedback", "results", "receipts":
      let kept = MessageHeaders.withoutBrokers(properties.headers)
      self.init(to: queue, "", topology.name(queue), properties, kept)
    default: throw Obstacle(description: "it came from \(queue), which is no queue of the fleet's")
    }
  }

  /// The route of a worker's message, by its noted origin.
  private init(notedOn properties: BasicProperties, or byDefault: String?, _ topology: Topology) throws(Obstacle) {
    let origins = Topology.lanes + [Topology.registryOrigin, Topology.acknowledgementOrigin]
    guard let noted = properties.headers[Topology.originHeader] else {
      guard let byDefault else { throw Obstacle(description: "it has no \(Topology.originHeader), which names the way back") }
      let queue = WorkQueue(origin: Array(byDefault.utf8))
      guard let queue, queue.isFanOut else {
        self.init(producers: byDefault, properties, topology)
        return
      }
      let kept = MessageHeaders.withoutBrokers(properties.headers)
      self.init(to: byDefault, topology.fanoutExchange, queue.route.key, properties, kept)
      return
    }
    guard case .string(let bytes) = noted, let origin = origins.first(where: { bytes.elementsEqual($0.utf8) }) else {
      throw Obstacle(description: "its \(Topology.originHeader) names no queue that requests come from")
    }
    // A replayed letter counts as put off after the replay, so an earlier discard doesn't end it.
    let kept = MessageHeaders.withoutBrokers(properties.headers).removing(Self.ofLetters + [NoteReader.putOffHeader])
    self.init(to: origin, topology.returnExchange, "", properties, kept)
  }

  /// The route of a message that a producer may have written entirely. If the broker has verified the user, the user's rights
  /// are checked again. A worker's note names the user, because only that user may publish under the name.
  private init(producers origin: String, _ properties: BasicProperties, _ topology: Topology) {
    var headers = MessageHeaders.withoutAdded(properties.headers)
    guard let user = properties.userID else {
      switch origin {
      case Topology.registryOrigin:
        self.init(to: origin, topology.registryExchange, Topology.changeKey, properties, headers)
      case Topology.acknowledgementOrigin:
        self.init(to: origin, topology.acknowledgementExchange, Topology.acknowledgementKey, properties, headers)
      default:
        let lane = WorkQueue(origin: Array(origin.utf8)) ?? .sendNormal
        self.init(to: lane.origin, topology.name(lane.route.exchange), lane.route.key, properties, headers)
      }
      return
    }
    headers.append(NoteReader.producerHeader, .string(user))
    headers.append(Topology.originHeader, .text(origin))
    self.init(to: origin, topology.returnExchange, "", properties, headers)
  }

  private init(
    to queue: String, _ exchange: String, _ routingKey: String, _ properties: BasicProperties, _ headers: FieldTable
  ) {
    self.queue = queue
    self.exchange = Array(exchange.utf8)
    self.routingKey = Array(routingKey.utf8)
    self.properties = properties
    self.properties.headers = NoteReader.limited(headers)
    self.properties.deliveryMode = 2
    self.properties.userID = nil
  }
}
