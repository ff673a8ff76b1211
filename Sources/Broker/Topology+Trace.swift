import AMQP

/// The stream of what became of requests. A stream, because it is read again and again and forgets by itself: no other queue of the fleet
/// is one, and none of the fleet's work depends on it.
extension Topology {
  public var traceExchange: String { name("trace") }
  public var traceQueue: String { name("trace") }
  package static let traceKey = "request"

  /// What declares it.
  public func traceCommands(_ settings: TraceSettings) -> [Command] {
    let bytes = Int64(settings.megabytes) << 20
    let arguments: FieldTable = [
      "x-queue-type": .text("stream"), "x-max-age": .text("\(settings.keep)s"), "x-max-length-bytes": .integer(bytes),
      // The broker forgets whole segments.
      "x-stream-max-segment-size-bytes": .integer(min(max(bytes / 8, 1 << 20), 32 << 20)),
    ]
    return [
      .exchangeDeclare(name: traceExchange, type: "direct", arguments: FieldTable()),
      .queueDeclare(name: traceQueue, arguments: arguments),
      .queueBind(queue: traceQueue, exchange: traceExchange, routingKey: Self.traceKey, arguments: FieldTable()),
    ]
  }
}
