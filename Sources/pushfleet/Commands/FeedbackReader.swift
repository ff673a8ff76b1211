import AMQP
import Reactor
import Settings

/// Consumes the feedback queue. Acknowledges events once they are printed or a command has processed them.
final class FeedbackReader: BrokerClient, ConsumerHandler {
  /// Seconds of silence after which the queue counts as empty.
  private static let quiet = 0.5
  /// Unacknowledged events at once; more if unwanted events are held until the end.
  private static let prefetch: UInt16 = 500
  private static let selectivePrefetch: UInt16 = 10_000
  /// Events that are printed or processed together at most.
  private static let largestBatch = 500

  /// Events that are printed or processed together, with the consumer that delivered them. Only that consumer may acknowledge
  /// them: on another connection, the same tokens belong to other events.
  private struct Batch {
    let events: ArraySlice<(line: [UInt8], token: DeliveryToken)>
    let consumer: Consumer

    var lines: [UInt8] { Array(events.map(\.line).joined()) }

    func acknowledge() { for event in events { consumer.acknowledge(event.token) } }
  }

  private let selection: FeedbackSelection
  private let follows: Bool
  private let command: ShellCommand?
  private var queue: String { topology.feedbackQueue }
  private var events: [(line: [UInt8], token: DeliveryToken)] = []
  /// nil while there is no connection.
  private var consumer: Consumer?
  private var seen = 0
  private var taken = 0
  private var passedOver = 0
  private var isRunning = false
  private var isLeaving = false

  init(_ configuration: Configuration, _ selection: FeedbackSelection, follows: Bool, command: ShellCommand?) throws {
    self.selection = selection
    self.follows = follows
    self.command = command
    try super.init(configuration, name: "pushfleet feedback")
    let prefetch = selection.isSelective ? Self.selectivePrefetch : Self.prefetch
    connection.makeMachine = { [unowned self] settings in
      Consumer(settings: settings, queues: [.init(queue: queue, prefetch: prefetch)], handler: self)
    }
  }

  override var outlivesBroker: Bool { follows || isRunning }

  func ready(_ consumer: Consumer) {
    up()
    self.consumer = consumer
    if !follows { endWhenQuiet(consumer) }
  }

  func delivered(_ delivery: Delivery) {
    seen += 1
    guard taken < selection.limit ?? .max else { return }
    guard selection.takes(delivery.body) else {
      passedOver += 1
      return
    }
    taken += 1
    events.append((delivery.body + [UInt8(ascii: "\n")], delivery.token))
    if events.count == 1 { loop.schedule(after: 0) { [weak self] in self?.flush() } }
  }

  /// Prints or processes the collected events. They stay in the queue if that fails.
  private func flush() {
    guard !isRunning, let consumer, !events.isEmpty else { return }
    let batch = Batch(events: events.prefix(Self.largestBatch), consumer: consumer)
    events.removeFirst(batch.events.count)
    if let command { return run(command, batch) }
    do throws(StandardOutput.Failure) { try StandardOutput.write(batch.lines) } catch {
      let fate = error == .closed ? ": the events stay in the queue" : ""
      return fail(.unavailable, Terminal.words(for: error) + fate)
    }
    dealtWith(batch)
    flush()
  }

  private func run(_ command: ShellCommand, _ batch: Batch) {
    isRunning = true
    command.run(batch.lines, on: loop) { [weak self] problem in
      guard let self else { return }
      isRunning = false
      if let problem {
        return fail(.unavailable, "the command \(problem): its \(batch.events.count) events stay in the queue")
      }
      dealtWith(batch)
      if isLeaving { close() } else { flush() }
    }
  }

  private func dealtWith(_ batch: Batch) {
    if !selection.isPeek { batch.acknowledge() }
    if taken >= selection.limit ?? .max, events.isEmpty { close() }
  }

  private func endWhenQuiet(_ consumer: Consumer) {
    let seen = seen
    loop.schedule(after: Self.quiet) { [weak self] in
      guard let self, consumer === self.consumer else { return }
      guard seen == self.seen, events.isEmpty, !isRunning else { return endWhenQuiet(consumer) }
      if passedOver >= Self.selectivePrefetch {
        Terminal.notice("ended after \(passedOver) unwanted events, which stay in the queue; there may be more behind them")
      }
      close()
    }
  }

  private func close() { if let consumer { consumer.close() } else { finish() } }

  /// Acknowledges what is printed; the rest stays in the queue. Waits for a running command, unless a second signal arrives.
  override func interrupt() {
    guard isUp else { return fail(.interrupted, "interrupted: nothing was read") }
    guard !isLeaving else { return finish() }
    isLeaving = true
    if !isRunning { close() }
  }

  func cancelled(queue: Int) { fail(.unavailable, "the queue \(self.queue) was deleted") }

  func channelLost(_ reason: ConnectionEnd) {
    taken -= events.count
    events = []
  }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    self.consumer = nil
    channelLost(reason)
    if case .notFound = reason { return fail(.unavailable, "there is no queue \(queue); `pushfleet topology` declares it") }
    if reason == .closedHere { finish() } else { lost(reason) }
  }
}
