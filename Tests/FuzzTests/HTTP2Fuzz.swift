import HTTP2
import TestSupport
import Wire

/// Every request has exactly one end, whatever the server says and whatever the handler does from within its calls; the session has
/// one end, behind all of them.
final class HTTP2Fuzz: MachineFuzz, ClientSessionHandler {
  private var input: Input
  private let session: ClientSession
  /// What the handler does from within each of its calls.
  private let reactions: [UInt8]

  private var submitted = 0
  private var open: Set<Int> = []
  private var ended = 0
  private var hasEnded = false
  private var held: [UInt8] = []
  private var isHeld = false
  private var values = HeaderValues()
  private static let most = 100
  private let template = HeaderTemplate(
    constant: [(":method", "POST"), (":scheme", "https"), (":authority", "push.test"), ("apns-topic", "com.example.app")],
    variable: [":path", "authorization", "apns-id", "apns-collapse-id"], unindexed: ["apns-id", "apns-collapse-id"])

  private enum Call: Int, CaseIterable { case ready, answers, failed, available, goAway, draining }

  init(_ input: inout Input) {
    let choices = input.byte()
    reactions = input.bytes(Call.allCases.count)
    var configuration = ClientConfiguration()
    configuration.ownStreamLimit = choices & 1 == 0 ? 3 : 1000
    configuration.streamsBeforeSettings = choices & 2 == 0 ? 0 : 100
    configuration.maxResponseBody = 32
    configuration.maxHeaderListSize = 512
    configuration.keptResponseHeaders = ["apns-id", "retry-after", "date"]
    configuration.keepsHeadersOfSuccess = choices & 4 == 0
    if choices & 8 != 0 { configuration.lastStreamID = 9 }
    session = ClientSession(configuration: configuration)
    self.input = input
    super.init(session)
    session.handler = self
    cut = choices & 16 == 0 ? .max : Int(choices >> 5) + 1
  }

  /// Begins with three requests open.
  func run() throws(Violation) {
    try say(Self.frame(4))
    for _ in 0..<3 { submit(bodyBytes: 2) }
    try flush()
    while !input.isAtEnd { try step() }
    try finish(after: 100, hasEnded, "a session without an end")
    try require(open.isEmpty, "requests without an end: \(open.sorted())")
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
    default:
      isHeld.toggle()
      if !isHeld { try tell([]) }
    }
    try checkViolation()
    if driver.end == nil {
      try require(session.activeStreams == open.count, "\(session.activeStreams) streams for \(open.count) requests")
    }
    try require(session.availableStreams >= 0 && session.sendableStreams >= 0, "less than no streams")
  }

  /// Says it, or keeps it to be said in one call with what follows.
  private func tell(_ bytes: [UInt8]) throws(Violation) {
    held += bytes
    guard !isHeld else { return }
    let words = held
    held = []
    try say(words)
  }

  private func submit(bodyBytes: Int) {
    guard session.availableStreams > 0, submitted < Self.most else { return }
    let tag = submitted
    submitted += 1
    values.removeAll()
    values.append(Array("/3/device/\(tag)".utf8))
    values.append(Array("bearer abc".utf8))
    values.append(Array("id-\(tag)".utf8))
    values.appendAbsent()
    open.insert(tag)
    let before = ended
    session.submit(template, body: [UInt8](repeating: 0x20, count: bodyBytes), tag: tag, &values)
    expect(ended == before, "an end from within submit")
  }

  private func end(of tag: Int) {
    expect(!hasEnded, "an end of a request after the session's")
    ended += 1
    expect(open.remove(tag) != nil, "an end of \(tag), which has one or was never submitted")
  }

  private func react(_ call: Call) {
    let reaction = reactions.count > call.rawValue ? reactions[call.rawValue] : 0
    if reaction & 1 != 0 { submit(bodyBytes: 2) }
    if reaction & 2 != 0 { for _ in 0..<3 { submit(bodyBytes: Int(reaction) * 64) } }
    if reaction & 8 != 0 { session.drain() }
    if reaction & 16 != 0 { session.limitStreams(to: Int(reaction >> 5)) }
  }

  private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
    [0, UInt8(payload.count >> 8 & 255), UInt8(payload.count & 255), type, flags]
      + withUnsafeBytes(of: stream.bigEndian, Array.init) + payload
  }

  // MARK: ClientSessionHandler

  func sessionReady() { react(.ready) }

  func answersReady(in session: ClientSession) {
    while let (tag, response) = session.nextAnswer() {
      end(of: tag)
      expect(200...599 ~= response.status, "an answer with status \(response.status)")
      expect(response.body.count <= session.configuration.maxResponseBody, "a body of \(response.body.count) bytes")
      for index in session.configuration.keptResponseHeaders.indices { _ = response.header(index) }
      react(.answers)
    }
  }

  func failed(_ tag: Int, _ failure: RequestFailure) {
    end(of: tag)
    react(.failed)
  }

  func streamsAvailable() { react(.available) }
  func goAwayReceived(_ goAway: GoAway) { react(.goAway) }
  func sessionDraining() { react(.draining) }

  func sessionEnded(_ reason: TransportEnd) {
    expect(!hasEnded, "two ends of one session")
    expect(open.isEmpty, "requests without an end when the session ends: \(open.sorted())")
    hasEnded = true
  }
}
