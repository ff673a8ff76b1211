import AMQP
import TestSupport
import Wire

/// Nothing is acknowledged to the broker but what was delivered on this channel and the handler has acknowledged, and that once;
/// bodies keep to their bounds; every transport has one end, and nothing comes after it.
final class ConsumerFuzz: MachineFuzz, ConsumerHandler {
  private var input: Input
  private let consumer: Consumer
  private let holder = Holder()
  private var words = BrokerWords(.consumer)
  private let maximumBody: Int
  /// What the handler does from within its calls.
  private let reaction: UInt8

  private var generation: UInt32 = 0
  private var marks: [UInt64: Mark] = [:]
  /// The first tag of this channel that the broker may still be told about.
  private var unsettled: UInt64 = 1
  private var tokens: [DeliveryToken] = []
  /// On any channel: a rejection of the last one may still be on its way when the broker delivers on the next.
  private var rejected: Set<UInt64> = []
  private var hasEnded = false

  private enum Mark { case delivered, acknowledged, rejected, settled }

  /// The consumer doesn't keep its handler alive, and wants it before there is one.
  private final class Holder: ConsumerHandler {
    weak var fuzz: ConsumerFuzz?
    func ready(_ consumer: Consumer) { fuzz?.ready(consumer) }
    func delivered(_ delivery: consuming Delivery) { fuzz?.delivered(delivery) }
    func cancelled(queue: Int) { fuzz?.cancelled(queue: queue) }
    func channelLost(_ reason: ConnectionEnd) { fuzz?.channelLost(reason) }
    func ended(_ consumer: Consumer, _ reason: ConnectionEnd) { fuzz?.ended(consumer, reason) }
  }

  init(_ input: inout Input) {
    let choices = input.byte()
    maximumBody = choices & 1 == 0 ? 16 : 1 << 20
    reaction = input.byte()
    consumer = Consumer(
      settings: ConnectionSettings(broker: BrokerURI(host: "broker", user: "me", password: "secret")),
      queues: [.init(queue: "q0", prefetch: 10), .init(queue: "q1", prefetch: 20, isOptional: choices & 2 != 0)],
      maximumBody: maximumBody, handler: holder)
    self.input = input
    super.init(consumer)
    holder.fuzz = self
    cut = choices & 4 == 0 ? .max : Int(choices >> 3) + 1
  }

  func run() throws(Violation) {
    if reaction & 128 == 0 {
      try say(BrokerWords.handshake)
      try flush()
      try say(words.opening())
    }
    while !input.isAtEnd { try step() }
    try finish(after: 60, hasEnded, "a transport without an end")
  }

  private func step() throws(Violation) {
    switch input.byte() % 16 {
    case 0...6: try say(words.next(&input))
    case 7: try flush()
    case 8: acknowledge(Int(input.byte()))
    case 9: reject(Int(input.byte()), requeue: input.byte() & 1 == 0)
    case 10: try wait(Double(input.byte()) / 4)
    case 11: consumer.cancelConsumers()
    case 12:
      let choices = input.byte()
      if choices & 2 == 0 {
        consumer.consume(queue: Int(choices & 1))
      } else {
        consumer.want(choices & 4 != 0, queue: Int(choices & 1))
      }
    case 13: consumer.close()
    case 14: try end(.failed("reset"))
    default:
      try reopen()
      words.startOver()
      hasEnded = hasEnded && driver.end != nil
    }
    try checkViolation()
  }

  private func acknowledge(_ index: Int) {
    guard !tokens.isEmpty else { return }
    let token = tokens[index % tokens.count]
    if token.generation == generation, marks[token.tag] == .delivered { marks[token.tag] = .acknowledged }
    consumer.acknowledge(token)
  }

  private func reject(_ index: Int, requeue: Bool) {
    guard !tokens.isEmpty else { return }
    let token = tokens[index % tokens.count]
    if token.generation == generation, marks[token.tag] == .delivered {
      marks[token.tag] = .rejected
      rejected.insert(token.tag)
    }
    consumer.reject(token, requeue: requeue)
  }

  override func written(_ bytes: [UInt8]) throws(Violation) {
    for frame in try WrittenFrames.take(bytes) {
      switch frame.method {
      case (60, 20)?: words.consumed(frame)
      case (60, 80)?:
        let tag: UInt64 = frame.number(at: 4)
        let isMultiple = frame.payload.last != 0
        try require(marks[tag] == .acknowledged, "an acknowledgement of \(tag), which is \(String(describing: marks[tag]))")
        for covered in isMultiple ? unsettled...max(tag, unsettled) : tag...tag {
          try require(
            marks[covered] == .acknowledged || marks[covered] == .rejected || marks[covered] == .settled,
            "an acknowledgement up to \(tag) covers \(covered), which is \(String(describing: marks[covered]))")
          marks[covered] = .settled
        }
        if isMultiple { unsettled = max(unsettled, tag + 1) }
      case (60, 90)?:
        let tag: UInt64 = frame.number(at: 4)
        try require(rejected.contains(tag), "a rejection of \(tag), which was not asked for")
        if marks[tag] == .rejected { marks[tag] = .settled }
      default: continue
      }
    }
  }

  // MARK: ConsumerHandler

  func ready(_ consumer: Consumer) {
    if reaction & 1 != 0 { consumer.cancelConsumers() }
  }

  func delivered(_ delivery: consuming Delivery) {
    expect(!hasEnded, "a delivery after the end")
    expect(delivery.body.count <= maximumBody, "a body of \(delivery.body.count) bytes")
    expect(UInt64(delivery.body.count) <= delivery.bodySize, "a body that is longer than announced")
    _ = delivery.properties.headers.entries
    if delivery.token.generation != generation {
      generation = delivery.token.generation
      marks = [:]
      unsettled = 1
    }
    expect(marks[delivery.token.tag] == nil, "a tag twice on one channel")
    marks[delivery.token.tag] = .delivered
    tokens.append(delivery.token)
    if reaction & 2 != 0 { acknowledge(tokens.count - 1) }
    if reaction & 4 != 0, tokens.count % 2 == 0 { reject(tokens.count - 1, requeue: true) }
    if reaction & 8 != 0, tokens.count == 3 { consumer.close() }
  }

  func cancelled(queue: Int) {
    if reaction & 16 != 0 { consumer.consume(queue: queue) }
  }

  func channelLost(_ reason: ConnectionEnd) {
    if reaction & 64 != 0 { consumer.cancelConsumers() }
  }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    expect(!hasEnded, "two ends of one transport")
    hasEnded = true
  }
}
