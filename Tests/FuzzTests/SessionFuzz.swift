import HTTP2
import TestSupport
import Wire

/// Every request has exactly one end, whatever the server says and whatever the handler does from within its calls; the session has
/// one end, behind all of them.
class SessionFuzz: MachineFuzz, ClientSessionHandler {
  let session: ClientSession
  /// What the handler does from within each of its calls.
  private let reactions: [UInt8]

  private var submitted = 0
  private(set) var open: Set<Int> = []
  private var ended = 0
  private var hasEnded = false
  private var held: [UInt8] = []
  private var isHeld = false
  private var values = HeaderValues()
  private static let most = 100
  private let template = HeaderTemplate(
    constant: [(":method", "POST"), (":scheme", "https"), (":authority", "push.test"), ("apns-topic", "com.example.app")],
    variable: [":path", "authorization", "apns-id", "apns-collapse-id"], unindexed: ["apns-id", "apns-collapse-id"])

  enum Call: Int, CaseIterable { case ready, answers, failed, available, goAway, draining }

  /// - Parameter reactions: a byte for each call.
  init(_ configuration: ClientConfiguration, reactions: [UInt8], applicationProtocol: String? = nil) {
    self.reactions = reactions
    session = ClientSession(configuration: configuration)
    super.init(session, applicationProtocol: applicationProtocol)
    session.handler = self
  }

  func finish() throws(Violation) {
    try finish(after: 100, hasEnded, "a session without an end")
    try require(open.isEmpty, "requests without an end: \(open.sorted())")
  }

  func checkStreams() throws(Violation) {
    try checkViolation()
    if driver.end == nil {
      try require(session.activeStreams == open.count, "\(session.activeStreams) streams for \(open.count) requests")
    }
    try require(session.availableStreams >= 0 && session.sendableStreams >= 0, "less than no streams")
  }

  /// Says it, or keeps it to be said in one call with what follows.
  func tell(_ bytes: [UInt8]) throws(Violation) {
    held += bytes
    guard !isHeld else { return }
    let words = held
    held = []
    try say(words)
  }

  func hold() throws(Violation) {
    isHeld.toggle()
    if !isHeld { try tell([]) }
  }

  func submit(bodyBytes: Int) {
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
