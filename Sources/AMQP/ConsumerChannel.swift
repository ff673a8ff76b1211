import Wire

/// One channel of a consumer: the delivery that is coming, and what is in hand.
final class ConsumerChannel {
  enum Content {
    /// A method may come. Then `header`.
    case none
    /// Then `body`, or `none` for an empty one.
    case header
    /// Then `none`.
    case body
    /// As `header` and `body`, of a delivery that nobody waits for.
    case formerHeader, formerBody
  }

  /// Acknowledgements that wait do so for this long, in seconds: those behind a delivery still in hand for it …
  static let longestDelay = 0.02
  /// … unless there are more of them than this.
  static let scatteredLimit = 64
  /// And where so many deliveries are in hand that more are in no hurry, each for others to go with it, up to so many: each frame or
  /// commit is an entry of the queue's log, and the deliveries that it makes room for are read together.
  static let manyInHand = 2_000
  static let gatheredLimit = 1_000

  let number: UInt16
  /// It has been asked for.
  var isOpen = false
  var window = AcknowledgementWindow()
  private(set) var acknowledgementDeadline = MonotonicTime.distantFuture
  /// Acknowledgements count with the next commit.
  private var isTransactional = false
  /// Commits that the broker has not answered.
  var commits = 0
  var content = Content.none
  private var remaining: UInt64 = 0
  var delivery = Delivery()
  /// What waits for the broker's answer about a queue, in the order of the questions.
  var inspections = Ring<(_ consumers: Int) -> Void>()

  init(_ number: UInt16) { self.number = number }

  func reset() {
    isOpen = false
    isTransactional = false
    commits = 0
    window.reset()
    acknowledgementDeadline = .distantFuture
    content = .none
    delivery.body = []
    inspections = Ring()
  }

  // MARK: content

  /// - Returns: whether a delivery is whole; nil for what can't be read.
  func header(_ payload: RawSpan, cache: inout PropertyCache) -> Bool? {
    var cursor = WireCursor(0..<payload.byteCount)
    let contentClass = cursor.uint16(in: payload)
    cursor.skip(2)
    remaining = cursor.uint64(in: payload)
    guard contentClass == Frame.basicClass, let properties = BasicProperties(&cursor, in: payload, cache: &cache) else {
      return nil
    }
    if content == .formerHeader {
      content = remaining == 0 ? .none : .formerBody
      return false
    }
    delivery.properties = properties
    delivery.bodySize = remaining
    delivery.body = []
    if remaining > 0 { content = .body }
    return remaining == 0
  }

  /// - Returns: whether a delivery is whole; nil for what is out of turn or too long.
  func body(_ payload: RawSpan, keeping maximum: Int) -> Bool? {
    guard content == .body || content == .formerBody, UInt64(payload.byteCount) <= remaining else { return nil }
    remaining -= UInt64(payload.byteCount)
    if content == .formerBody {
      if remaining == 0 { content = .none }
      return false
    }
    let kept = min(payload.byteCount, maximum - delivery.body.count)
    if delivery.body.isEmpty {
      if remaining > 0 { delivery.body.reserveCapacity(Int(min(delivery.bodySize, UInt64(maximum), 1 << 20))) }
      if delivery.body.capacity == 0 {
        delivery.body = payload.array(0..<kept)
      } else {
        payload.append(0..<kept, to: &delivery.body)
      }
    } else if kept > 0 {
      payload.append(0..<kept, to: &delivery.body)
    }
    return remaining == 0
  }

  /// The delivery that is whole, without a copy.
  func take() -> Delivery {
    content = .none
    var whole = Delivery()
    swap(&whole, &delivery)
    return whole
  }

  // MARK: acknowledgements

  /// All that one frame can acknowledge, and what is behind a delivery still in hand when it has waited; of many in hand, when there are
  /// enough of them.
  ///
  /// Acknowledgements that need several frames are committed together: RabbitMQ makes one entry of the queue's log of them.
  /// - Parameter isDraining: nothing more is to come, so that acknowledgements are in no hurry.
  func appendAcknowledgements(
    of codec: MethodCodec, to output: inout [UInt8], at now: MonotonicTime, isDraining: Bool
  ) {
    guard window.waiting > 0 else { return }
    if isDraining || window.inHand >= Self.manyInHand, window.waiting < Self.gatheredLimit, now < acknowledgementDeadline {
      return waitForMore(at: now)
    }
    let waiting = window.waiting
    if let (tag, multiple) = window.takePrefix() {
      codec.append(.ack(tag: tag, multiple: multiple), channel: number, to: &output)
    }
    if window.waiting == 0 {
      acknowledgementDeadline = .distantFuture
    } else if window.waiting > Self.scatteredLimit || now >= acknowledgementDeadline {
      acknowledgementDeadline = .distantFuture
      beginTransaction(codec, &output)
      window.takeScattered { codec.append(.ack(tag: $0, multiple: false), channel: number, to: &output) }
    } else {
      waitForMore(at: now)
    }
    if isTransactional, window.waiting < waiting { appendCommit(codec, &output) }
  }

  /// All that waits, and a commit: its answer comes after everything that was said before it.
  func appendLastAcknowledgements(of codec: MethodCodec, to output: inout [UInt8]) {
    appendAcknowledgements(of: codec, to: &output, at: .distantFuture, isDraining: true)
    beginTransaction(codec, &output)
    appendCommit(codec, &output)
  }

  func appendRejection(of tag: UInt64, requeue: Bool, of codec: MethodCodec, to output: inout [UInt8]) {
    codec.append(.reject(tag: tag, requeue: requeue), channel: number, to: &output)
    if isTransactional { appendCommit(codec, &output) }
  }

  private func beginTransaction(_ codec: MethodCodec, _ output: inout [UInt8]) {
    guard !isTransactional else { return }
    isTransactional = true
    codec.append(.transaction, channel: number, to: &output)
  }

  private func appendCommit(_ codec: MethodCodec, _ output: inout [UInt8]) {
    commits += 1
    codec.append(.commit, channel: number, to: &output)
  }

  private func waitForMore(at now: MonotonicTime) {
    if acknowledgementDeadline == .distantFuture { acknowledgementDeadline = now.advanced(bySeconds: Self.longestDelay) }
  }
}
