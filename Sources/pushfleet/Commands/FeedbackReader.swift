import AMQP
import Foundation
import Reactor
import Settings

/// Consumes the feedback queue. What is printed, or dealt with by a command, is acknowledged after that; everything else goes back.
final class FeedbackReader: BrokerClient, ConsumerHandler {
  /// Seconds of silence after which the queue counts as empty.
  private static let quiet = 0.5
  /// Events in hand at once, and where those that aren't wanted are kept in hand until the end.
  private static let prefetch: UInt16 = 500
  private static let selectivePrefetch: UInt16 = 10_000

  private let selection: FeedbackSelection
  private let follows: Bool
  private let command: ShellCommand?
  private let queue: String
  private var lines: [UInt8] = []
  private var tokens: [DeliveryToken] = []
  private var consumer: Consumer?
  private var seen = 0
  private var taken = 0
  private var passedOver = 0
  /// A command has events in hand.
  private var isRunning = false
  private var isLeaving = false

  init(_ configuration: Configuration, _ selection: FeedbackSelection, follows: Bool, command: ShellCommand?) throws {
    self.selection = selection
    self.follows = follows
    self.command = command
    queue = configuration.topology.feedbackQueue
    try super.init(configuration)
    let prefetch = selection.isSelective ? Self.selectivePrefetch : Self.prefetch
    connection.makeMachine = { [unowned self] broker in
      let consumer = Consumer(
        settings: ConnectionSettings(broker: broker, name: "pushfleet feedback"),
        queues: [.init(queue: queue, prefetch: prefetch)], handler: self)
      self.consumer = consumer
      return consumer
    }
  }

  func ready(_ consumer: Consumer) {
    up()
    if !follows { endWhenQuiet() }
  }

  func delivered(_ delivery: Delivery) {
    seen += 1
    guard taken < selection.limit ?? .max else { return }
    guard selection.takes(delivery.body) else {
      passedOver += 1
      return
    }
    taken += 1
    lines.append(contentsOf: delivery.body)
    lines.append(UInt8(ascii: "\n"))
    tokens.append(delivery.token)
    if tokens.count == 1 { loop.schedule(after: 0) { [weak self] in self?.flush() } }
  }

  /// What can't be written is not acknowledged: it stays in the queue.
  private func flush() {
    guard !isRunning, !tokens.isEmpty else { return }
    let (batch, settled) = (lines, tokens)
    lines.removeAll(keepingCapacity: true)
    tokens.removeAll(keepingCapacity: true)
    if let command { return run(command, batch, settled) }
    do throws(StandardOutput.Failure) { try StandardOutput.write(batch) } catch {
      switch error {
      case .readerGone: StandardOutput.endForReaderGone()
      case .closed: return fail(.unavailable, "standard output is closed: the events stay in the queue")
      case .other(let reason): return fail(.unavailable, "standard output can't be written: \(reason)")
      }
    }
    dealtWith(settled)
  }

  private func run(_ command: ShellCommand, _ batch: [UInt8], _ settled: [DeliveryToken]) {
    isRunning = true
    command.run(batch, on: loop) { [weak self] problem in
      guard let self else { return }
      isRunning = false
      if let problem {
        return fail(.unavailable, "the command \(problem): its \(settled.count) events stay in the queue")
      }
      dealtWith(settled)
      if isLeaving { close() } else { flush() }
    }
  }

  private func dealtWith(_ settled: [DeliveryToken]) {
    if !selection.isPeek { for token in settled { consumer?.acknowledge(token) } }
    if taken >= selection.limit ?? .max, tokens.isEmpty { close() }
  }

  private func endWhenQuiet() {
    let seen = seen
    loop.schedule(after: Self.quiet) { [weak self] in
      guard let self else { return }
      guard seen == self.seen, tokens.isEmpty, !isRunning else { return endWhenQuiet() }
      if passedOver >= Self.selectivePrefetch {
        Terminal.complain("ended after \(passedOver) events of others, which stay in the queue; there may be more behind them")
      }
      close()
    }
  }

  private func close() { consumer?.close() }

  /// What is printed by now is acknowledged; the rest stays in the queue. A command may end first; a second signal doesn't wait for it.
  override func interrupt() {
    guard isUp else { return fail(.interrupted, "interrupted: nothing was read") }
    guard consumer != nil, !isLeaving else { return finish() }
    isLeaving = true
    if !isRunning { close() }
  }

  func cancelled(queue: Int) { fail(.unavailable, "the queue \(self.queue) was deleted") }

  func channelLost(_ reason: ConnectionEnd) {
    taken -= tokens.count
    lines.removeAll(keepingCapacity: true)
    tokens.removeAll(keepingCapacity: true)
  }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    channelLost(reason)
    if case .notFound = reason { return fail(.unavailable, "there is no queue \(queue); `pushfleet topology` declares it") }
    if reason == .closedHere { finish() } else { lost(reason) }
  }
}
