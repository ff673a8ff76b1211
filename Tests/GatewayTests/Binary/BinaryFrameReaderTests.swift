import TestSupport
import Testing

@testable import Gateway

@Suite("Frames of APNs' binary interface")
struct BinaryFrameReaderTests {
  /// Reads bytes in pieces of `cut`; returns the frames, and the refusal that ended the reading, if any.
  private func read(_ bytes: [UInt8], cut: Int = .max) -> (frames: [BinaryFrame], refusal: BinaryRefusal?, isInFrame: Bool) {
    var reader = BinaryFrameReader()
    let reading = Pieces.read(bytes, cut: cut) { (piece, offset) throws(BinaryRefusal) in try reader.next(piece, &offset) }
    #expect(!reading.isStuck)
    return (reading.frames, reading.refusal, reader.isInFrame)
  }

  private func refusal(_ bytes: [UInt8]) -> BinaryRefusal? { read(bytes).refusal }

  private let three =
    OldSender.simple() + OldSender.enhanced(7, expiry: 1_800_000_000)
    + OldSender.framed(8, expiry: 5, priority: 5, token: Array(repeating: 9, count: 100))

  @Test("all three commands are read from one stream, in any pieces", arguments: [1, 2, 3, 7, 50, .max])
  func slicing(_ cut: Int) {
    let (frames, refusal, isInFrame) = read(three + three, cut: cut)
    let expected: [BinaryFrame] = [
      BinaryFrame(isSimple: true, token: OldSender.token, payload: OldSender.payload),
      BinaryFrame(identifier: 7, expiry: 1_800_000_000, token: OldSender.token, payload: OldSender.payload),
      BinaryFrame(
        identifier: 8, expiry: 5, priority: 5, token: Array(repeating: 9, count: 100), payload: OldSender.payload),
    ]
    #expect(frames == expected + expected && refusal == nil && !isInFrame)
  }

  @Test("a close in the middle keeps the frames before it", arguments: 1..<20)
  func truncated(_ missing: Int) {
    let (frames, refusal, isInFrame) = read(three.dropLast(missing * 5))
    #expect(frames.count == 2 && refusal == nil && isInFrame)
  }

  @Test("items come in any order, and missing ones have defaults")
  func itemOrder() {
    let frame = OldSender.framed([(5, [5]), (3, [0, 0, 1, 0]), (2, OldSender.payload), (1, OldSender.token)])
    #expect(
      read(frame).frames == [BinaryFrame(identifier: 256, priority: 5, token: OldSender.token, payload: OldSender.payload)])
    let least = OldSender.framed([(1, OldSender.token), (2, OldSender.payload)])
    #expect(read(least).frames == [BinaryFrame(token: OldSender.token, payload: OldSender.payload)])
  }

  @Test("an error has its status, and the identifier from any place")
  func refusals() {
    let long = Array(repeating: UInt8(ascii: "x"), count: 2049)
    let cases: [(String, [UInt8], BinaryStatus, UInt32?)] = [
      ("no token", OldSender.framed([(2, OldSender.payload), (3, OldSender.big(1, 4))]), .missingToken, 1),
      ("an empty token", OldSender.framed(2, token: []), .missingToken, 2),
      ("a short token", OldSender.framed(3, token: Array(repeating: 1, count: 31)), .invalidTokenSize, 3),
      ("a long token", OldSender.framed(4, token: Array(repeating: 1, count: 101)), .invalidTokenSize, 4),
      ("no payload", OldSender.framed([(3, OldSender.big(5, 4)), (1, OldSender.token)]), .missingPayload, 5),
      ("an empty payload", OldSender.framed(6, payload: []), .missingPayload, 6),
      ("a long payload", OldSender.framed(7, payload: long), .invalidPayloadSize, 7),
      ("a priority of none", OldSender.framed(8, priority: 7), .unknown, 8),
      ("an unknown item", OldSender.framed([(9, [1]), (3, OldSender.big(9, 4))]), .protocolError, 9),
      (
        "two tokens", OldSender.framed([(1, OldSender.token), (1, OldSender.token), (3, OldSender.big(10, 4))]), .protocolError,
        10
      ),
      ("two identifiers", OldSender.framed([(3, OldSender.big(11, 4)), (3, OldSender.big(12, 4))]), .protocolError, 11),
      ("an identifier of three bytes", OldSender.framed([(3, [0, 0, 1])]), .protocolError, nil),
      ("an expiration of five", OldSender.framed([(3, OldSender.big(13, 4)), (4, [0, 0, 0, 0, 1])]), .protocolError, 13),
      ("a priority of two", OldSender.framed([(3, OldSender.big(14, 4)), (5, [0, 1])]), .protocolError, 14),
      ("no items", [2, 0, 0, 0, 0], .missingToken, nil),
      ("a frame of two bytes", [2, 0, 0, 0, 2, 1, 0], .protocolError, nil),
      (
        "an item beyond its frame", [2, 0, 0, 0, 10, 3, 0, 4, 0, 0, 0, 15, 1, 0, 9], .protocolError, 15
      ),
      ("a frame longer than can be", [2, 0xFF, 0xFF, 0xFF, 0xFF], .protocolError, nil),
      ("an unknown command", [3], .protocolError, nil),
      ("another protocol", Array("GET / HTTP/1.1\r\n".utf8), .protocolError, nil),
      ("command 1, no token", OldSender.enhanced(16, token: []), .missingToken, 16),
      ("command 1, a token of 65,535", [1, 0, 0, 0, 17, 0, 0, 0, 0, 0xFF, 0xFF], .invalidTokenSize, 17),
      ("command 1, no payload", OldSender.enhanced(18, payload: []), .missingPayload, 18),
      ("command 1, a long payload", OldSender.enhanced(19, payload: long), .invalidPayloadSize, 19),
    ]
    for (what, bytes, status, identifier) in cases {
      #expect(refusal(bytes) == BinaryRefusal(status: status, identifier: identifier), "\(what)")
    }
  }

  @Test("an error in command 0 has no answer")
  func silent() {
    #expect(refusal(OldSender.simple(token: []))?.response == nil)
    #expect(refusal(OldSender.simple(payload: []))?.response == nil)
    #expect(refusal(OldSender.simple(token: [1]))?.isSilent == true)
  }

  @Test("sizes at their limits are accepted")
  func bounds() {
    let most = Array(repeating: UInt8(ascii: "x"), count: 2048)
    #expect(read(OldSender.framed(1, token: Array(repeating: 1, count: 32), payload: most)).frames.count == 1)
    #expect(read(OldSender.simple(token: Array(repeating: 1, count: 100), payload: most)).frames.count == 1)
  }

  @Test("nothing is read after a refusal", arguments: [1, 5, .max])
  func nothingBehind(_ cut: Int) {
    let (frames, refusal, _) = read(
      OldSender.framed(1) + OldSender.framed(2, token: []) + OldSender.framed(3) + OldSender.framed(4, payload: []), cut: cut)
    #expect(frames.map(\.identifier) == [1] && refusal == BinaryRefusal(status: .missingToken, identifier: 2))
  }
}
