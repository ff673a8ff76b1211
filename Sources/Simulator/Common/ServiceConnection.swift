import HTTP2
import Wire

/// One connection to a simulated service.
class ServiceConnection<Service: SimulatedService> {
  unowned final let service: Service
  final let number: Int

  init(_ service: Service, number: Int) {
    self.service = service
    self.number = number
  }

  /// Performs the step's fault and answers the request as the step says, after the step's delay.
  /// - Parameter normal: makes the answer; called if there is one.
  final func perform(
    _ step: Step?, _ entry: inout JournalEntry, on connection: any SimulatedConnection,
    normal: (JournalEntry) -> SimulatedAnswer
  ) {
    let fault = step?.fault
    entry.fault = fault?.name
    if let streams = step?.streams { connection.setMaxConcurrentStreams(streams) }
    var answer: SimulatedAnswer?
    if fault?.hasAnswer != false {
      var made = normal(entry)
      (entry.status, entry.reason) = (made.status, made.reason)
      if let body = step?.body { made.body = Array(body.utf8) }
      if let retryAfter = step?.retryAfter { made.headers.append(HeaderField("retry-after", retryAfter)) }
      answer = made
    }
    let act = { [answer, stream = entry.stream] in
      fault?.strike(connection, stream)
      if let answer { connection.respond(stream, status: answer.status, headers: answer.headers, body: answer.body) }
    }
    guard let step, step.delayMilliseconds > 0 else { return act() }
    service.time.schedule(after: Double(step.delayMilliseconds) / 1000, act)
  }

  final func noteViolation(_ what: String) {
    service.journal.noteViolation(what, connection: number, at: service.time.wallClock)
  }
  final func connectionEnded() { service.connectionEnded(number) }

  func protocolViolated(_ what: String, on session: ServerSession) { noteViolation(what) }
  func sessionEnded(_ reason: TransportEnd, of session: ServerSession) { connectionEnded() }
}

/// A connection to a simulator, for its answers and faults. Streams are numbered by the protocol.
protocol SimulatedConnection: AnyObject {
  func respond(_ stream: Int32, status: Int, headers: [HeaderField], body: [UInt8])
  func reset(_ stream: Int32, _ code: ErrorCode)
  func goAway(lastStreamID: Int32, code: ErrorCode, debugData: [UInt8])
  func setMaxConcurrentStreams(_ limit: Int)
  func abort()
}

extension ServerSession: SimulatedConnection {}

/// An answer to a request.
struct SimulatedAnswer {
  var status: Int
  /// For the journal; nil if the request is accepted.
  var reason: String?
  var headers: [HeaderField] = []
  var body: [UInt8] = []
}
