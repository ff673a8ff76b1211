import AMQP

/// Whose the headers of a message are: its producer's, a worker's, the broker's.
package enum MessageHeaders {
  package static let sender = "x-push-sender"
  package static let environment = "x-push-environment"
  package static let unknown = "x-push-unknown"
  /// The headers that are the producer's own and stay with the request wherever it goes.
  static let choiceNames = [sender, environment, unknown]
  static let choices = choiceNames.map { Array($0.utf8) }

  /// A copied `x-death` would make the broker take the next expiry for a cycle, and the message would stay unseen.
  private static let brokers = ["x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count"]
    .map { Array($0.utf8) }
  private static let workers = Array("x-push-".utf8)
  /// RabbitMQ routes by these as well: copied, they would send a retry to more queues than one.
  private static let routes = ["CC", "BCC"].map { Array($0.utf8) }

  private static func isBrokers(_ name: [UInt8]) -> Bool {
    routes.contains(name) || brokers.contains { name.starts(with: $0) }
  }

  /// What the producer and workers have written.
  package static func withoutBrokers(_ headers: FieldTable) -> FieldTable { headers.removing(where: isBrokers) }

  /// What the producer has written.
  package static func withoutAdded(_ headers: FieldTable) -> FieldTable {
    headers.removing { name in !choices.contains(name) && (name.starts(with: workers) || isBrokers(name)) }
  }
}
