import AMQP
import Foundation
import Reactor
import Worker

enum FeedbackCommand: Command {
  static let name = "feedback"
  static let summary = "print feedback events, dead and doubtful tokens, and acknowledge them"
  static let help = """
    Usage: pushfleet feedback --config FILE [--follow]

    Prints each event of the feedback queue as one line of JSON and acknowledges it once it is written. Ends when the queue
    is empty.

      --config FILE   the configuration (or PUSHFLEET_CONFIG)
      --follow        stay and print what comes, until interrupted

    Prune a NotRegistered token only if it was registered before invalid_since (null: before observed_at).

    Example: pushfleet feedback --config pushfleet.json5 | jq -r 'select(.event == "NotRegistered") | [.token, .invalid_since // .observed_at] | @tsv'
    """

  static func run(_ arguments: inout [String]) throws {
    let options = try Options(arguments, values: ["config"], flags: ["follow", "json"])
    try options.refuseOperands()
    let client = try FeedbackReader(try options.configuration(), follows: options.has("follow"))
    let signals = try Signals(loop: client.loop, [2, 15]) { _ in client.leave() }
    defer { signals.close() }
    try client.run()
  }
}

/// Consumes the feedback queue, printing before acknowledging.
private final class FeedbackReader: BrokerClient, ConsumerHandler {
  /// Seconds of silence after which the queue counts as empty.
  private static let quiet = 0.5

  private let follows: Bool
  private let queue: String
  private var lines: [UInt8] = []
  private var tokens: [DeliveryToken] = []
  private var consumer: Consumer?
  private var lastDelivery = 0

  init(_ configuration: Configuration, follows: Bool) throws {
    self.follows = follows
    queue = configuration.topology.feedbackQueue
    try super.init(configuration)
    connection.makeMachine = { [unowned self] broker in
      let consumer = Consumer(
        settings: ConnectionSettings(broker: broker, name: "pushfleet feedback"), queues: [.init(queue: queue, prefetch: 500)],
        handler: self)
      self.consumer = consumer
      return consumer
    }
  }

  func ready(_ consumer: Consumer) {
    up()
    if !follows { endWhenQuiet() }
  }

  func delivered(_ delivery: Delivery) {
    lastDelivery += 1
    lines.append(contentsOf: delivery.body)
    lines.append(UInt8(ascii: "\n"))
    tokens.append(delivery.token)
    if tokens.count == 1 { loop.schedule(after: 0) { [weak self] in self?.flush() } }
  }

  /// What can't be written is not acknowledged: it stays in the queue.
  private func flush() {
    do throws(StandardOutput.Failure) { try StandardOutput.write(lines) } catch {
      switch error {
      case .readerGone: StandardOutput.endForReaderGone()
      case .closed: return fail(.unavailable, "standard output is closed: the events stay in the queue")
      case .other(let reason): return fail(.unavailable, "standard output can't be written: \(reason)")
      }
    }
    for token in tokens { consumer?.acknowledge(token) }
    lines.removeAll(keepingCapacity: true)
    tokens.removeAll(keepingCapacity: true)
  }

  private func endWhenQuiet() {
    let seen = lastDelivery
    loop.schedule(after: Self.quiet) { [weak self] in
      guard let self else { return }
      if seen == lastDelivery, tokens.isEmpty { consumer?.close() } else { endWhenQuiet() }
    }
  }

  /// What is printed by now is acknowledged; the rest stays in the queue.
  func leave() {
    if isUp, let consumer { consumer.close() } else { finish() }
  }

  func cancelled(queue: Int) { fail(.unavailable, "the queue \(self.queue) was deleted") }

  func channelLost(_ reason: ConnectionEnd) {
    lines.removeAll(keepingCapacity: true)
    tokens.removeAll(keepingCapacity: true)
  }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    channelLost(reason)
    if case .notFound = reason { return fail(.unavailable, "there is no queue \(queue); `pushfleet topology` declares it") }
    if reason == .closedHere { finish() } else { lost(reason) }
  }
}
