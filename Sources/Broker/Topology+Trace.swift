import AMQP

/// The stream of finished requests, the fleet's only stream. It can be read repeatedly and deletes old entries. No other work
/// needs it.
extension Topology {
  public var traceExchange: String { name("trace") }
  public var traceQueue: String { name("trace") }
  package static let traceKey = "request"

  public func traceCommands(_ settings: TraceSettings) -> [Command] {
    let bytes = Int64(settings.megabytes) << 20
    let arguments: FieldTable = [
      "x-queue-type": .text("stream"), "x-max-age": .text("\(settings.keep)s"), "x-max-length-bytes": .integer(bytes),
      // The broker deletes whole segments.
      "x-stream-max-segment-size-bytes": .integer(min(max(bytes / 8, 1 << 20), 32 << 20)),
    ]
    return [
      .exchangeDeclare(name: traceExchange, type: "direct", arguments: FieldTable()),
      .queueDeclare(name: traceQueue, arguments: arguments),
      .queueBind(queue: traceQueue, exchange: traceExchange, routingKey: Self.traceKey, arguments: FieldTable()),
    ]
  }
}
