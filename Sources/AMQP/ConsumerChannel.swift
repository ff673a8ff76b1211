import Wire

/// One channel of a consumer: its incoming delivery and its unacknowledged deliveries.
final class ConsumerChannel {
  /// Longest time in seconds that acknowledgements wait for others.
  static let longestDelay = 0.02
  /// Acknowledgements behind a delivery in hand are sent at once if there are more than this.
  static let scatteredLimit = 64
  /// With at least `manyInHand` deliveries in hand, acknowledgements wait until there are `gatheredLimit` of them. Each frame
  /// or commit is one entry of the queue's log, and the next deliveries are then read together.
  static let manyInHand = 2_000
  static let gatheredLimit = 1_000

  let number: UInt16
  var isOpen = false
  var window = AcknowledgementWindow()
  private(set) var acknowledgementDeadline = MonotonicTime.distantFuture
  /// True if acknowledgements count only with the next commit.
  private var isTransactional = false
  var commits = 0
  var content = ContentAssembly()
  /// Completions of open questions about queues, in the order of the questions.
  var inspections = Ring<(_ consumers: Int) -> Void>()

  init(_ number: UInt16) { self.number = number }

  func reset() {
    isOpen = false
    isTransactional = false
    commits = 0
    window.reset()
    acknowledgementDeadline = .distantFuture
    content = ContentAssembly()
    inspections = Ring()
  }

  // MARK: - Acknowledgements

  /// Appends all acknowledgements that one frame can cover. Those behind a delivery in hand follow after a delay, and many
  /// deliveries in hand delay all acknowledgements. If several frames are needed, they are committed together: RabbitMQ then
  /// writes one log entry.
  /// - Parameter isDraining: no more deliveries follow, so acknowledgements may wait.
  func appendAcknowledgements(to output: inout [UInt8], at now: MonotonicTime, isDraining: Bool) {
    guard window.waiting > 0 else { return }
    if isDraining || window.inHand >= Self.manyInHand, window.waiting < Self.gatheredLimit, now < acknowledgementDeadline {
      return waitForMore(at: now)
    }
    let waiting = window.waiting
    if let (tag, multiple) = window.takePrefix() {
      OutboundMethod.ack(tag: tag, multiple: multiple).append(to: &output, channel: number)
    }
    if window.waiting == 0 {
      acknowledgementDeadline = .distantFuture
    } else if window.waiting > Self.scatteredLimit || now >= acknowledgementDeadline {
      acknowledgementDeadline = .distantFuture
      beginTransaction(&output)
      window.takeScattered { OutboundMethod.ack(tag: $0, multiple: false).append(to: &output, channel: number) }
    } else {
      waitForMore(at: now)
    }
    if isTransactional, window.waiting < waiting { appendCommit(&output) }
  }

  /// Appends all waiting acknowledgements and a commit. The answer to the commit confirms everything before it.
  func appendLastAcknowledgements(to output: inout [UInt8]) {
    appendAcknowledgements(to: &output, at: .distantFuture, isDraining: true)
    beginTransaction(&output)
    appendCommit(&output)
  }

  func appendRejection(of tag: UInt64, requeue: Bool, to output: inout [UInt8]) {
    OutboundMethod.reject(tag: tag, requeue: requeue).append(to: &output, channel: number)
    if isTransactional { appendCommit(&output) }
  }

  private func beginTransaction(_ output: inout [UInt8]) {
    guard !isTransactional else { return }
    isTransactional = true
    OutboundMethod.transaction.append(to: &output, channel: number)
  }

  private func appendCommit(_ output: inout [UInt8]) {
    commits += 1
    OutboundMethod.commit.append(to: &output, channel: number)
  }

  private func waitForMore(at now: MonotonicTime) {
    if acknowledgementDeadline == .distantFuture { acknowledgementDeadline = now.advanced(bySeconds: Self.longestDelay) }
  }
}
