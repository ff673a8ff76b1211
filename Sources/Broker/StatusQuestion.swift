import AMQP

/// The question of `pushfleet status` to all workers of a fleet. Workers that don't know the difference answer both alike.
package enum StatusQuestion {
  package static let plain = Array("status".utf8)
  /// The answer names more pools than those in trouble and a few others.
  package static let pools = Array("status pools".utf8)
}

extension Publisher {
  /// Seconds to wait for workers' answers.
  package static let answerTime = 1.0

  /// Asks each worker for its status; answers carry `id` as correlation id.
  package func askWorkers(_ topology: Topology, _ question: [UInt8], id: [UInt8], tag: Int) {
    var properties = BasicProperties()
    properties.replyTo = Self.replyTo
    properties.correlationID = id
    properties.expiration = Array("5000".utf8)
    publish(
      exchange: Array(topology.controlExchange.utf8), routingKey: [], properties: properties, body: question, tag: tag)
  }
}
