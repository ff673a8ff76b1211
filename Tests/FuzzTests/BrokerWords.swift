/// What a broker says to a machine: whole frames with chosen contents, well-formed or not, so that the fuzzer needn't find out about
/// lengths and end octets.
struct BrokerWords {
  enum Role { case consumer, publisher }

  private let role: Role
  /// The next delivery's tag, and the next confirm's, when the broker counts well.
  private var nextDelivery: UInt64 = 1
  private var nextConfirm: UInt64 = 1
  /// The consumers that the machine has named, the latest last; and those of them that wait for their first answer.
  private var consumers: [[UInt8]] = ["0.1", "1.1"].map { Array($0.utf8) }
  private var unanswered: [[UInt8]] = []

  init(_ role: Role) { self.role = role }

  /// On a new connection everything is counted anew.
  mutating func startOver() { (nextDelivery, nextConfirm) = (1, 1) }

  /// A `basic.consume` of the machine.
  mutating func consumed(_ frame: WrittenFrames.Frame) {
    // Behind a reserved number stand the queue's name and the consumer's.
    let names = frame.payload.dropFirst(6)
    let name = names.dropFirst(1 + Int(names.first ?? 0))
    unanswered.append(Array(name.dropFirst().prefix(Int(name.first ?? 0))))
    consumers.append(unanswered[unanswered.count - 1])
  }

  /// What answers the opening of the machine's channel, and all that it has asked for on it.
  mutating func opening() -> [UInt8] {
    let opened = Self.method(1, 20, 11, Self.long([]))
    guard role == .consumer else { return opened + Self.method(1, 85, 11) }
    defer { unanswered = [] }
    return unanswered.reduce(opened) { $0 + Self.method(1, 60, 11) + Self.method(1, 60, 21, Self.short($1)) }
  }

  static let handshake =
    method(0, 10, 10, [0, 9] + long([]) + long(Array("PLAIN".utf8)) + long(Array("en_US".utf8)))
    + method(0, 10, 30, [7, 255, 0, 2, 0, 0, 0, 10]) + method(0, 10, 41, [0])

  mutating func next(_ input: inout Input) -> [UInt8] {
    switch input.byte() % 12 {
    case 0: return input.counted()
    case 1: return Self.frame(input.byte(), UInt16(input.byte() & 3), input.counted())
    case 2:
      let (classID, methodID) = Self.methods[Int(input.byte()) % Self.methods.count]
      if methodID == 30 || methodID == 31, classID == 60, role == .consumer {
        // A cancel, or the answer to one, of a consumer that there is.
        let name = consumers[consumers.count - 1 - Int(input.byte()) % consumers.count]
        return Self.method(1, classID, methodID, Self.short(name) + [1])
      }
      return Self.method(UInt16(input.byte() & 3), classID, methodID, input.counted())
    case 3: return Self.handshake
    case 4:
      (nextDelivery, nextConfirm) = (1, 1)
      return opening()
    case 5: return message(&input)
    case 6: return delivery(&input)
    case 7: return confirm(&input)
    case 8: return returned(&input)
    case 9:
      let code = [404, 403, 406, 541, 320, 405][Int(input.byte()) % 6] as UInt16
      let text = Self.short(Array("PRECONDITION_FAILED inequivalent arg, timed out".utf8.prefix(Int(input.byte() & 63))))
      let channel = UInt16(input.byte() & 3)
      let arguments = Self.number(code) + text + [0, 0, 0, 0]
      return channel == 0 ? Self.method(0, 10, 50, arguments) : Self.method(channel, 20, 40, arguments)
    case 10: return Self.frame(8, 0, [])
    default:
      let counted = input.counted()
      return Self.frame(input.byte(), UInt16(input.byte() & 3), counted, end: input.byte())
    }
  }

  /// A delivery with content that may be of several frames.
  private mutating func message(_ input: inout Input) -> [UInt8] {
    let choices = input.byte()
    var words = delivered(choices)
    let flags: UInt16 = choices & 4 == 0 ? 0 : input.integer()
    let properties = choices & 4 == 0 ? [] : input.counted()
    let body = input.counted()
    words += Self.header(size: UInt64(body.count), flags: flags, properties)
    if choices & 8 != 0, body.count > 1 {
      return words + Self.frame(3, 1, Array(body[..<1])) + Self.frame(3, 1, Array(body[1...]))
    }
    return body.isEmpty ? words : words + Self.frame(3, 1, body)
  }

  /// The method alone; the rest may follow or not.
  private mutating func delivery(_ input: inout Input) -> [UInt8] {
    let choices = input.byte()
    if choices & 4 != 0 { nextDelivery &+= UInt64(input.byte()) }
    return delivered(choices)
  }

  /// To one of the two latest consumers, or to an earlier one.
  private mutating func delivered(_ choices: UInt8) -> [UInt8] {
    defer { nextDelivery &+= 1 }
    let known = choices & 16 == 0 ? consumers.suffix(2) : consumers[...]
    let consumer = known[known.startIndex + Int(choices & 1)]
    return Self.method(
      1, 60, 60, Self.short(consumer) + Self.number(nextDelivery) + [choices >> 1 & 1] + Self.short([]) + Self.short([0x6B]))
  }

  private mutating func confirm(_ input: inout Input) -> [UInt8] {
    let choices = input.byte()
    let ahead = choices & 4 == 0 ? 0 : UInt64(input.byte())
    let sequence = choices & 8 == 0 ? nextConfirm &+ ahead : ahead
    nextConfirm = max(nextConfirm, sequence &+ 1)
    return Self.method(1, 60, choices & 1 == 0 ? 80 : 120, Self.number(sequence) + [choices >> 1 & 1])
  }

  /// A message of ours comes back: with the routing key and the id that publishes have here.
  private func returned(_ input: inout Input) -> [UInt8] {
    let id = Array(String(input.byte()).utf8)
    let body = [UInt8](repeating: 0x62, count: Int(input.byte() & 3))
    return Self.method(1, 60, 50, Self.number(UInt16(312)) + Self.short([]) + Self.short([]) + Self.short([0x6B]))
      + Self.header(size: UInt64(body.count), flags: 1 << 7, Self.short(id)) + (body.isEmpty ? [] : Self.frame(3, 1, body))
  }

  // MARK: encoding (AMQP 0-9-1 §4.2)

  static func frame(_ type: UInt8, _ channel: UInt16, _ payload: [UInt8], end: UInt8 = 0xCE) -> [UInt8] {
    [type] + number(channel) + number(UInt32(payload.count)) + payload + [end]
  }

  static func method(_ channel: UInt16, _ classID: UInt16, _ methodID: UInt16, _ arguments: [UInt8] = []) -> [UInt8] {
    frame(1, channel, number(classID) + number(methodID) + arguments)
  }

  static func header(size: UInt64, flags: UInt16, _ properties: [UInt8]) -> [UInt8] {
    frame(2, 1, [0, 60, 0, 0] + number(size) + number(flags) + properties)
  }

  static func number(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.bigEndian, Array.init) }
  static func short(_ bytes: [UInt8]) -> [UInt8] { [UInt8(truncatingIfNeeded: bytes.count)] + bytes }
  static func long(_ bytes: [UInt8]) -> [UInt8] { number(UInt32(bytes.count)) + bytes }

  private static let methods: [(UInt16, UInt16)] = [
    (10, 10), (10, 20), (10, 30), (10, 41), (10, 50), (10, 51), (10, 60), (10, 61), (20, 11), (20, 20), (20, 21), (20, 40),
    (20, 41), (40, 11), (50, 11), (50, 21), (60, 11), (60, 21), (60, 30), (60, 31), (60, 50), (60, 60), (60, 80), (60, 120),
    (60, 72), (85, 11), (60, 99), (99, 1),
  ]
}

/// The frames that a machine writes, taken apart.
enum WrittenFrames {
  struct Frame {
    var type: UInt8
    var channel: UInt16
    var payload: ArraySlice<UInt8>

    /// Class and method of a method frame.
    var method: (UInt16, UInt16)? {
      guard type == 1, payload.count >= 4 else { return nil }
      return (number(at: 0), number(at: 2))
    }

    func number<Number: FixedWidthInteger>(at offset: Int) -> Number {
      payload.dropFirst(offset).prefix(MemoryLayout<Number>.size).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }
  }

  /// The frames of what was written, which is always whole ones.
  static func take(_ written: [UInt8]) throws(Violation) -> [Frame] {
    var rest = written[...]
    if rest.starts(with: Array("AMQP".utf8)) { rest = rest.dropFirst(8) }
    var frames: [Frame] = []
    while !rest.isEmpty {
      try require(rest.count >= 8, "half a frame is written")
      let size = rest.dropFirst(3).prefix(4).reduce(0) { $0 << 8 | Int($1) }
      try require(rest.count >= 8 + size, "half a frame is written")
      let channel = rest.dropFirst(1).prefix(2).reduce(0) { $0 << 8 | UInt16($1) }
      frames.append(Frame(type: rest[rest.startIndex], channel: channel, payload: rest.dropFirst(7).prefix(size)))
      try require(rest.dropFirst(7 + size).first == 0xCE, "a frame is written without its end octet")
      rest = rest.dropFirst(8 + size)
    }
    return frames
  }
}
