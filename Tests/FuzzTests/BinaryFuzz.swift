import MachineDriver
import PushCore
import TestSupport
import Wire

@testable import Gateway

/// Whatever a sender writes, and however it is cut: the same notifications are read, each of allowed sizes, nothing behind a refusal, and what
/// is published of them is a request that the fleet takes. An error response has six bytes and is the last word.
enum BinaryFuzz {
  static func run(_ input: inout Input) throws(Violation) {
    let cut = Int(input.byte()) + 1
    let bytes = input.remainder()
    let (whole, end) = try read(bytes, cut: .max)
    let (pieces, otherEnd) = try read(bytes, cut: cut)
    try require(whole == pieces && end == otherEnd, "other notifications where the bytes are cut")
    for frame in whole {
      try require(BinaryFrame.tokenSizes.contains(frame.token.count), "a token of \(frame.token.count) bytes")
      try require(1...BinaryFrame.payloadLimit ~= frame.payload.count, "a payload of \(frame.payload.count) bytes")
      try require(frame.priority == 5 || frame.priority == 10, "priority \(frame.priority)")
    }
    try checkRequests(whole)
    try converse(bytes, cut: cut)
  }

  private static func read(_ bytes: [UInt8], cut: Int) throws(Violation) -> ([BinaryFrame], BinaryRefusal?) {
    var reader = BinaryFrameReader()
    let reading = Pieces.read(bytes, cut: cut) { (piece, offset) throws(BinaryRefusal) in try reader.next(piece, &offset) }
    try require(!reading.isStuck, "no byte was used")
    return (reading.frames, reading.refusal)
  }

  private static func checkRequests(_ frames: [BinaryFrame]) throws(Violation) {
    for frame in frames {
      guard
        let request = try? BinaryRequest(
          frame, app: Array("a".utf8), now: 1_800_000_000, id: Array("m".utf8), limits: RequestLimits())
      else { continue }
      guard case .success(let parsed) = SendRequest.parse(request.body) else {
        throw Violation(description: "a request that the fleet doesn't take")
      }
      guard case .one(.apns(let token)) = parsed.targets, token.count == 2 * frame.token.count else {
        throw Violation(description: "a request to somebody else")
      }
    }
  }

  private static func converse(_ bytes: [UInt8], cut: Int) throws(Violation) {
    let publisher = ConfirmingPublisher()
    let connection = BinaryConnection(publisher) { _ in Array("a".utf8) }
    let driver = MachineDriver(connection)
    let now = MonotonicTime(nanoseconds: 0)
    driver.open(at: now)
    var rest = bytes[...]
    while !rest.isEmpty {
      driver.receive(Array(rest.prefix(cut)), at: now)
      rest = rest.dropFirst(cut)
      publisher.confirmAll()
    }
    _ = driver.collect(at: now)
    let said = driver.transcript
    try require(said.isEmpty || said.count == 6 && said[0] == 8 && connection.isFinished, "\(said.count) bytes of an answer")
    driver.finish(.closedByPeer, at: now)
    publisher.confirmAll()
    try require(publisher.isFinished, "a connection that never ends")
  }
}

/// Confirms everything.
private final class ConfirmingPublisher: BinaryPublisher {
  let wallClock: Int64 = 1_800_000_000_000
  let limits = RequestLimits()
  private(set) var isFinished = false
  private var answers: [(Bool) -> Void] = []

  func hasRoom(for connection: BinaryConnection) -> Bool { true }
  func publish(_ request: BinaryRequest, _ settled: @escaping (Bool) -> Void) { answers.append(settled) }
  func noteFarewell(_ response: ErrorResponse?, of app: [UInt8]?) {}
  func noteUnheard(_ response: ErrorResponse?, lost: Int, of app: [UInt8]?) {}
  func heard(_ connection: BinaryConnection, isIdle: Bool) {}
  func opened(_ connection: BinaryConnection) -> Bool { true }
  func finished(_ connection: BinaryConnection) { isFinished = true }

  func confirmAll() {
    while !answers.isEmpty { answers.removeFirst()(true) }
  }
}
