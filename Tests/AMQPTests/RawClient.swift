import BrokerModel
import MachineDriver
import TestSupport
import Testing
import Wire

/// A client whose frames the test writes by hand, on a connection of a modelled broker that is open.
final class RawClient {
  let driver: MachineDriver
  private let broker: VirtualBroker
  static let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
  let now = start

  init(_ broker: VirtualBroker, channels: UInt16 = 1) throws {
    self.broker = broker
    driver = MachineDriver(try #require(broker.accept()))
    driver.open(at: now)
    _ = say(Self.opening + (1...channels).flatMap { Self.method($0, 20, 10, Say.short("")) })
  }

  static let opening: [UInt8] =
    Array("AMQP".utf8) + [0, 0, 9, 1]
    + method(
      0, 10, 11, Say.long([]) + Say.short("PLAIN") + Say.long([0] + bytes("guest") + [0] + bytes("guest")) + Say.short("en_US"))
    + method(0, 10, 31, Say.be(UInt16(0)) + Say.be(UInt32(0)) + Say.be(UInt16(0)))
    + method(0, 10, 40, Say.short("/") + Say.short("") + [0])

  static func method(_ channel: UInt16, _ classID: UInt16, _ methodID: UInt16, _ arguments: [UInt8]) -> [UInt8] {
    Say.method(channel, classID, methodID, arguments)
  }

  /// What the broker says to it.
  func say(_ frames: [UInt8]) -> [ClientFrame] {
    driver.receive(frames, at: now)
    let answers = heard()
    driver.settle(at: now)
    return answers
  }

  func heard() -> [ClientFrame] { ClientFrame.parse(driver.collect(at: now)) }

  // MARK: - Frames

  /// Flags: passive 1, durable 2, exclusive 4, auto-delete 8.
  static func declare(_ queue: String, flags: UInt8 = 2, arguments: [UInt8] = [], _ channel: UInt16 = 1) -> [UInt8] {
    method(channel, 50, 10, [0, 0] + Say.short(queue) + [flags] + Say.long(arguments))
  }
  static func declareExchange(_ name: String, type: String = "direct") -> [UInt8] {
    method(1, 40, 10, [0, 0] + Say.short(name) + Say.short(type) + [2] + Say.long([]))
  }
  /// Flags: no-wait 1.
  static func bindExchange(_ name: String, to source: String, flags: UInt8 = 0) -> [UInt8] {
    method(1, 40, 30, [0, 0] + Say.short(name) + Say.short(source) + Say.short("k") + [flags] + Say.long([]))
  }
  /// Flags: if-unused 1, no-wait 2.
  static func deleteExchange(_ name: String, flags: UInt8 = 0) -> [UInt8] {
    method(1, 40, 20, [0, 0] + Say.short(name) + [flags])
  }
  static func unbind(_ queue: String, from exchange: String) -> [UInt8] {
    method(1, 50, 50, [0, 0] + Say.short(queue) + Say.short(exchange) + Say.short("k") + Say.long([]))
  }
  /// Flags: no-ack 2, exclusive 4.
  static func consume(_ queue: String, tag: String, flags: UInt8 = 0, _ channel: UInt16 = 1) -> [UInt8] {
    method(channel, 60, 20, [0, 0] + Say.short(queue) + Say.short(tag) + [flags] + Say.long([]))
  }
  static func publish(_ key: String, _ body: String, exchange: String = "", mandatory: Bool = true) -> [UInt8] {
    method(1, 60, 40, [0, 0] + Say.short(exchange) + Say.short(key) + [mandatory ? 1 : 0])
      + Say.header(size: UInt64(body.utf8.count)) + (body.isEmpty ? [] : Say.body(bytes(body)))
  }
  static func qos(_ prefetch: UInt16) -> [UInt8] { method(1, 60, 10, Say.be(UInt32(0)) + Say.be(prefetch) + [0]) }
  static let select = method(1, 85, 10, [0])
  static let closeOK = method(1, 20, 41, [])
  static let quorum: [UInt8] = Say.short("x-queue-type") + [UInt8(ascii: "S")] + Say.long(bytes("quorum"))
}

extension ClientFrame {
  /// `channel.close` and `connection.close`: the code and the text.
  var refusal: String {
    let length = Int(payload[6])
    return "\(UInt16(payload[4]) << 8 | UInt16(payload[5])) \(String(decoding: payload[7..<7 + length], as: UTF8.self))"
  }
}
