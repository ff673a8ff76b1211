import AMQP

/// Distinguishes the headers of the producer, of workers and of the broker.
package enum MessageHeaders {
  package static let sender = "x-push-sender"
  package static let environment = "x-push-environment"
  package static let unknown = "x-push-unknown"
  /// Headers of the producer that stay with the request on every queue.
  static let choiceNames = [sender, environment, unknown]
  static let choices = choiceNames.map { Array($0.utf8) }

  /// A copied `x-death` would make the broker treat the next expiry as a cycle, and the message would disappear from view.
  private static let brokers = ["x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count"]
    .map { Array($0.utf8) }
  private static let workers = Array("x-push-".utf8)
  /// RabbitMQ also routes by these headers. If copied, they would send a retry to several queues.
  private static let routes = ["CC", "BCC"].map { Array($0.utf8) }

  private static func isBrokers(_ name: [UInt8]) -> Bool {
    routes.contains(name) || brokers.contains { name.starts(with: $0) }
  }

  package static func withoutBrokers(_ headers: FieldTable) -> FieldTable { headers.removing(where: isBrokers) }

  /// - Parameter keepsChoices: the producer's choices are kept; its other headers are not.
  static func withoutProducers(_ headers: FieldTable, keepsChoices: Bool) -> FieldTable {
    headers.removing { !$0.starts(with: workers) || !keepsChoices && choices.contains($0) }
  }

  package static func withoutAdded(_ headers: FieldTable) -> FieldTable {
    headers.removing { name in !choices.contains(name) && (name.starts(with: workers) || isBrokers(name)) }
  }
}
