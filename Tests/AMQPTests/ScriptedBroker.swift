import AMQP
import MachineDriver
import TestSupport
import Testing
import Wire

/// What a broker says, encoded by hand so that no code under test vouches for itself.
enum Say {
  static func frame(_ type: UInt8, _ channel: UInt16, _ payload: [UInt8], end: UInt8 = 0xce) -> [UInt8] {
    [type] + be(channel) + be(UInt32(payload.count)) + payload + [end]
  }

  static func method(_ channel: UInt16, _ classID: UInt16, _ methodID: UInt16, _ arguments: [UInt8] = []) -> [UInt8] {
    frame(1, channel, be(classID) + be(methodID) + arguments)
  }

  static func be<T: FixedWidthInteger>(_ value: T) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
  static func short(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }
  static func long(_ bytes: [UInt8]) -> [UInt8] { be(UInt32(bytes.count)) + bytes }

  static func start(properties: [UInt8] = [], mechanisms: String = "AMQPLAIN PLAIN") -> [UInt8] {
    method(0, 10, 10, [0, 9] + long(properties) + long(bytes(mechanisms)) + long(bytes("en_US")))
  }
  static func tune(channelMax: UInt16 = 2047, frameMax: UInt32 = 131_072, heartbeat: UInt16 = 60) -> [UInt8] {
    method(0, 10, 30, be(channelMax) + be(frameMax) + be(heartbeat))
  }
  static let openOK = method(0, 10, 41, short(""))
  static func close(_ code: UInt16, _ text: String) -> [UInt8] { method(0, 10, 50, be(code) + short(text) + [0, 0, 0, 0]) }
  static let closeOK = method(0, 10, 51)
  static func blocked(_ reason: String) -> [UInt8] { method(0, 10, 60, short(reason)) }
  static let unblocked = method(0, 10, 61)
  static let heartbeat = frame(8, 0, [])

  static let channelCloseOK = method(1, 20, 41)
  static func channelOpenOK(_ channel: UInt16 = 1) -> [UInt8] { method(channel, 20, 11, long([])) }
  static func channelClose(_ code: UInt16, _ text: String, _ channel: UInt16 = 1) -> [UInt8] {
    method(channel, 20, 40, be(code) + short(text) + [0, 0, 0, 0])
  }

  static func queueDeclareOK(_ queue: String, consumers: UInt32) -> [UInt8] {
    method(1, 50, 11, short(queue) + be(UInt32(0)) + be(consumers))
  }
  static let qosOK = method(1, 60, 11)
  /// Consumers are named by their queue's index and which opening of the channel they belong to.
  static func consumeOK(_ tag: String) -> [UInt8] { method(1, 60, 21, short(tag)) }
  static func cancel(_ tag: String, nowait: Bool = true) -> [UInt8] { method(1, 60, 30, short(tag) + [nowait ? 1 : 0]) }
  static func cancelOK(_ tag: String) -> [UInt8] { method(1, 60, 31, short(tag)) }
  static func deliver(_ number: UInt64, consumer: String = "0.1", redelivered: Bool = false) -> [UInt8] {
    method(1, 60, 60, short(consumer) + be(number) + [redelivered ? 1 : 0] + short("push.send") + short("high"))
  }
  static func header(size: UInt64, flags: UInt16 = 0, _ values: [UInt8] = []) -> [UInt8] {
    frame(2, 1, be(UInt16(60)) + be(UInt16(0)) + be(size) + be(flags) + values)
  }
  static func body(_ bytes: [UInt8]) -> [UInt8] { frame(3, 1, bytes) }
  static func message(_ number: UInt64, _ text: String = "x", consumer: String = "0.1", redelivered: Bool = false) -> [UInt8] {
    deliver(number, consumer: consumer, redelivered: redelivered) + header(size: UInt64(text.utf8.count)) + body(bytes(text))
  }

  static let selectOK = method(1, 85, 11)
  static let transactionOK = method(1, 90, 11)
  static let commitOK = method(1, 90, 21)
  static func ack(_ number: UInt64, multiple: Bool = false) -> [UInt8] { method(1, 60, 80, be(number) + [multiple ? 1 : 0]) }
  static func nack(_ number: UInt64, multiple: Bool = false) -> [UInt8] {
    method(1, 60, 120, be(number) + [multiple ? 1 : 0])
  }
  /// A returned message with a message id as its only property.
  static func returned(key: String, id: String, body: [UInt8]) -> [UInt8] {
    method(1, 60, 50, be(UInt16(312)) + short("NO_ROUTE") + short("") + short(key))
      + header(size: UInt64(body.count), flags: 1 << 7 | 1 << 12, [2] + short(id)) + (body.isEmpty ? [] : Say.body(body))
  }
}

/// A frame that a machine wrote.
struct ClientFrame: Equatable, CustomStringConvertible {
  var type: UInt8
  var channel: UInt16
  var payload: [UInt8]

  /// Class and method, such as "60.40".
  var name: String {
    switch type {
    case 1: "\(UInt16(payload[0]) << 8 | UInt16(payload[1])).\(UInt16(payload[2]) << 8 | UInt16(payload[3]))"
    case 2: "header"
    case 3: "body"
    case 8: "heartbeat"
    default: "type \(type)"
    }
  }
  var description: String { "\(name)@\(channel)" }

  /// `basic.ack` and `basic.reject`: the tag, and the flag behind it.
  var tag: UInt64 { payload[4..<12].reduce(0) { $0 << 8 | UInt64($1) } }
  var flag: Bool { payload[12] != 0 }

  static func parse(_ bytes: [UInt8]) -> [ClientFrame] {
    var frames: [ClientFrame] = []
    var rest = bytes[...]
    if rest.starts(with: [0x41, 0x4d, 0x51, 0x50]) { rest = rest.dropFirst(8) }
    while rest.count >= 8 {
      let head = Array(rest.prefix(7))
      let size = Int(head[3]) << 24 | Int(head[4]) << 16 | Int(head[5]) << 8 | Int(head[6])
      let payload = Array(rest.dropFirst(7).prefix(size))
      #expect(rest.dropFirst(7 + size).first == 0xce)
      frames.append(ClientFrame(type: head[0], channel: UInt16(head[1]) << 8 | UInt16(head[2]), payload: payload))
      rest = rest.dropFirst(8 + size)
    }
    #expect(rest.isEmpty)
    return frames
  }
}

extension [ClientFrame] {
  /// The tags of its acknowledgements.
  var acknowledged: [UInt64] { filter { $0.name == "60.80" }.map(\.tag) }
}

/// A machine, its driver, a clock, and a test that plays the broker.
class Script {
  let driver: MachineDriver
  var now = MonotonicTime(nanoseconds: 1_000_000_000_000)

  init(_ machine: any Machine) {
    driver = MachineDriver(machine)
    driver.open(at: now)
  }

  /// So many seconds in which the broker says nothing but that it is there.
  func beat(_ seconds: Int) {
    for _ in 0..<seconds {
      wait(1)
      say(Say.heartbeat)
    }
  }

  /// Everything written since the last call.
  func heard() -> [ClientFrame] { ClientFrame.parse(driver.collect(at: now)) }

  func say(_ frames: [UInt8]...) {
    driver.receive(frames.flatMap { $0 }, at: now)
    driver.settle(at: now)
  }

  func say(_ frames: [UInt8], inPiecesOf size: Int) {
    for start in stride(from: 0, to: frames.count, by: size) {
      driver.receive(Array(frames[start..<min(frames.count, start + size)]), at: now)
    }
    driver.settle(at: now)
  }

  /// Moves the clock, stopping at the machine's deadlines; what it writes is collected.
  @discardableResult
  func wait(_ seconds: Double) -> [ClientFrame] {
    let target = now.advanced(bySeconds: seconds)
    var frames: [ClientFrame] = []
    while driver.isOpen, driver.machine.deadline <= target {
      now = max(now, driver.machine.deadline)
      driver.checkDeadline(at: now)
      driver.settle(at: now)
      frames += heard()
    }
    now = target
    return frames
  }

  /// Moves the clock, and the machine has no turn meanwhile.
  func standStill(_ seconds: Double) { now = now.advanced(bySeconds: seconds) }

  static let handshake = Say.start() + Say.tune() + Say.openOK
  static var settings: ConnectionSettings {
    ConnectionSettings(broker: BrokerURI(host: "broker", user: "me", password: "secret"))
  }
}

/// A consumer that is ready.
final class ConsumerScript: Script {
  let recorder = ConsumerRecorder()
  let consumer: Consumer

  /// - Parameter optional: further queues, consumed when they are wanted.
  init(queues: Int = 1, optional: Int = 0, maximumBody: Int = 1 << 20, isReady: Bool = true) {
    consumer = Consumer(
      settings: Self.settings,
      queues: (0..<queues + optional).map {
        .init(queue: "q\($0)", prefetch: UInt16(10 * ($0 + 1)), isOptional: $0 >= queues)
      },
      maximumBody: maximumBody, handler: recorder)
    super.init(consumer)
    guard isReady else { return }
    say(Self.handshake, Self.consuming(queues))
    _ = heard()
    recorder.events = []
  }

  static func consuming(_ queues: Int, opening: Int = 1) -> [UInt8] {
    Say.channelOpenOK() + (0..<queues).flatMap { Say.qosOK + Say.consumeOK("\($0).\(opening)") }
  }

  func acknowledge(_ indices: Int...) { for index in indices { consumer.acknowledge(recorder.deliveries[index].token) } }
}

/// A publisher that is ready.
final class PublisherScript: Script {
  let recorder = PublisherRecorder()
  let publisher: Publisher

  /// Its handshake has not begun.
  init(broker: BrokerURI) {
    publisher = Publisher(settings: ConnectionSettings(broker: broker), window: 1000, handler: recorder)
    super.init(publisher)
  }

  init(window: Int = 1000, tune: [UInt8] = Say.tune(), isReady: Bool = true) {
    publisher = Publisher(settings: Self.settings, window: window, handler: recorder)
    super.init(publisher)
    guard isReady else { return }
    say(Say.start() + tune + Say.openOK, Say.channelOpenOK(), Say.selectOK)
    _ = heard()
    recorder.events = []
  }

  func publish(_ tags: Range<Int>, key: String = "k") {
    for tag in tags {
      publisher.publish(exchange: [], routingKey: bytes(key), properties: properties(id: "\(tag)"), body: bytes("b"), tag: tag)
    }
  }
}
