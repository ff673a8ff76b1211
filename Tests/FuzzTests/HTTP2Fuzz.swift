import HTTP2
import TestSupport
import Wire

/// A provider's HTTP/2.
final class HTTP2Fuzz: SessionFuzz {
  private var input: Input

  init(_ input: inout Input) {
    let choices = input.byte()
    let reactions = input.bytes(Call.allCases.count)
    var configuration = ClientConfiguration()
    configuration.ownStreamLimit = choices & 1 == 0 ? 3 : 1000
    configuration.maxResponseBody = 32
    configuration.maxHeaderListSize = 512
    configuration.keptResponseHeaders = ["apns-id", "retry-after", "date"]
    configuration.keepsHeadersOfSuccess = choices & 4 == 0
    if choices & 8 != 0 { configuration.lastStreamID = 9 }
    self.input = input
    super.init(configuration, reactions: reactions)
    cut = choices & 16 == 0 ? .max : Int(choices >> 5) + 1
  }

  /// Begins with three requests open.
  func run() throws(Violation) {
    try say(Self.frame(4))
    for _ in 0..<3 { submit(bodyBytes: 2) }
    try flush()
    while !input.isAtEnd { try step() }
    try finish()
  }

  private func step() throws(Violation) {
    switch input.byte() % 16 {
    case 0: try tell(input.counted())
    case 1...2:
      let (type, flags, stream) = (input.byte(), input.byte(), UInt32(input.byte()))
      // What is said often is a flood.
      let frame = Self.frame(type % 12, flags: flags, stream: stream, input.counted())
      try tell((0...type / 12).flatMap { _ in frame })
    case 3:
      // A whole answer; its body may be cut off.
      let (choices, stream) = (input.byte(), UInt32(input.byte() % 64) * 2 + 1)
      try tell(
        Self.frame(1, flags: 4 | choices & 1, stream: stream, [0x88])
          + (choices & 2 == 0 ? [] : Self.frame(0, flags: choices >> 2 & 1, stream: stream, input.counted())))
    case 4: try tell(Self.frame(3, stream: UInt32(input.byte() % 64) * 2 + 1, [0, 0, 0, input.byte() & 15]))
    case 5: try tell(Self.frame(7, [0, 0, 0, input.byte(), 0, 0, 0, input.byte() & 15] + input.counted()))
    case 6: try tell(Self.frame(4, [0, [1, 3, 4, 5][Int(input.byte() & 3)], 0, 0, input.byte(), input.byte()]))
    case 7: try tell(Self.frame(8, stream: UInt32(input.byte()), [0, input.byte(), 0, 1]))
    case 8: for _ in 0...input.byte() % 4 { submit(bodyBytes: Int(input.byte()) * 300) }
    case 9, 10: try wait(Double(input.byte()) / 4)
    case 11: session.drain()
    case 12:
      let limit = input.byte()
      session.limitStreams(to: limit == 255 ? nil : Int(limit))
    case 13: try tell(Self.frame(6, flags: input.byte() & 1, input.bytes(8)))
    case 14: try flush()
    default: try hold()
    }
    try checkStreams()
  }

  private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
    [0, UInt8(payload.count >> 8 & 255), UInt8(payload.count & 255), type, flags]
      + withUnsafeBytes(of: stream.bigEndian, Array.init) + payload
  }
}
