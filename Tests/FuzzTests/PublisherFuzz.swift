import AMQP
import TestSupport
import Wire

/// Every publish has exactly one outcome, never from within the call and at the latest when the transport ends; so has every command.
final class PublisherFuzz: MachineFuzz, PublisherHandler {
  private var input: Input
  private let publisher: Publisher
  private let holder = Holder()
  private var words = BrokerWords(.publisher)
  /// What the handler does from within its calls.
  private let reaction: UInt8

  private var published = 0
  private var outstanding: Set<Int> = []
  private var settled = 0
  private var unanswered = 0
  private var hasEnded = false
  private static let most = 200

  private final class Holder: PublisherHandler {
    weak var fuzz: PublisherFuzz?
    func ready(_ publisher: Publisher) { fuzz?.ready(publisher) }
    func confirmed(_ tag: Int) { fuzz?.confirmed(tag) }
    func failed(_ tag: Int, _ failure: PublishFailure) { fuzz?.failed(tag, failure) }
    func blocked(_ publisher: Publisher, reason: String) { fuzz?.blocked(publisher, reason: reason) }
    func unblocked(_ publisher: Publisher) { fuzz?.unblocked(publisher) }
    func ended(_ publisher: Publisher, _ reason: ConnectionEnd) { fuzz?.ended(publisher, reason) }
  }

  init(_ input: inout Input) {
    let choices = input.byte()
    reaction = input.byte()
    publisher = Publisher(
      settings: ConnectionSettings(broker: BrokerURI(host: "broker", user: "me", password: "secret")),
      window: choices & 1 == 0 ? 3 : 1000, handler: holder)
    self.input = input
    super.init(publisher)
    holder.fuzz = self
    cut = choices & 4 == 0 ? .max : Int(choices >> 3) + 1
  }

  func run() throws(Violation) {
    if reaction & 128 == 0 { try say(BrokerWords.handshake + words.opening()) }
    while !input.isAtEnd { try step() }
    try finish(after: 60, hasEnded, "a transport without an end")
  }

  private func step() throws(Violation) {
    switch input.byte() % 16 {
    case 0...5: try say(words.next(&input))
    case 6: try flush()
    case 7...8: publish(input.byte())
    case 9: for _ in 0..<8 { publish(0) }
    case 10: try wait(Double(input.byte()) / 4)
    case 11: perform(input.byte())
    case 12: publisher.close()
    case 13: try end(.failed("reset"))
    default:
      try reopen()
      words.startOver()
      hasEnded = hasEnded && driver.end != nil
    }
    try checkViolation()
    try require(publisher.unconfirmed <= outstanding.count, "more unconfirmed than published")
  }

  private func publish(_ form: UInt8) {
    guard publisher.isReady, published < Self.most else { return }
    let tag = published
    published += 1
    var properties = BasicProperties()
    properties.messageID = Array(String(tag).utf8)
    if form & 4 != 0 { properties.correlationID = [UInt8](repeating: 0x63, count: Int(form) * 2) }
    if form & 8 != 0 {
      properties.headers.append("h", .string([UInt8](repeating: 0, count: form & 16 == 0 ? 40 : 140_000)))
    }
    outstanding.insert(tag)
    let before = settled
    publisher.publish(
      exchange: [], routingKey: form & 32 == 0 ? [0x6B] : [UInt8](repeating: 0x6B, count: 300), properties: properties,
      body: [UInt8](repeating: 0x62, count: Int(form & 3)), tag: tag)
    expect(settled == before, "an outcome from within the call")
  }

  private func perform(_ form: UInt8) {
    let command: Command =
      switch form % 7 {
      case 0: .exchangeDeclare(name: "e", type: "direct", arguments: FieldTable())
      case 1: .queueDeclare(name: "q", arguments: ["x-queue-type": .text("quorum")])
      case 2: .queueInspect(name: "q")
      case 3: .queueBind(queue: "q", exchange: "e", routingKey: "k", arguments: FieldTable())
      case 4: .queueUnbind(queue: "q", exchange: "e", routingKey: "k", arguments: FieldTable())
      case 5: .exchangeBind(name: "f", source: "e", routingKey: "k", arguments: FieldTable())
      default: .exchangeDelete(name: "e")
      }
    unanswered += 1
    var isAnswered = false
    publisher.perform(command) { [weak self] _ in
      self?.expect(!isAnswered, "two answers to one command")
      isAnswered = true
      self?.unanswered -= 1
    }
  }

  override func written(_ bytes: [UInt8]) throws(Violation) { _ = try WrittenFrames.take(bytes) }

  private func settle(_ tag: Int) {
    expect(!hasEnded, "an outcome after the end")
    settled += 1
    expect(outstanding.remove(tag) != nil, "an outcome of \(tag), which has one or was never published")
  }

  // MARK: PublisherHandler

  func ready(_ publisher: Publisher) {
    if reaction & 1 != 0 { publish(0) }
  }

  func confirmed(_ tag: Int) {
    settle(tag)
    if reaction & 2 != 0 { publish(0) }
  }

  func failed(_ tag: Int, _ failure: PublishFailure) {
    settle(tag)
    if reaction & 4 != 0 { publish(reaction) }
    if reaction & 8 != 0, unanswered == 0 { perform(reaction) }
  }

  func blocked(_ publisher: Publisher, reason: String) {
    if reaction & 16 != 0 { publish(0) }
    if reaction & 32 != 0 { publisher.close() }
  }

  func unblocked(_ publisher: Publisher) {
    if reaction & 64 != 0 { publish(0) }
  }

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    expect(!hasEnded, "two ends of one transport")
    expect(outstanding.isEmpty, "without an outcome at the end: \(outstanding.sorted())")
    expect(unanswered == 0, "\(unanswered) commands without an answer at the end")
    hasEnded = true
  }
}
