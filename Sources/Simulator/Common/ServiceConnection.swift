import HTTP2
import Wire

/// One connection to a simulated service.
class ServiceConnection<Configuration: SimulatorConfiguration, Service: ScriptedService<Configuration>> {
  unowned final let service: Service
  final let number: Int

  init(_ service: Service, number: Int) {
    self.service = service
    self.number = number
  }

  /// Answers the request as its step says, or plays the step's fault.
  /// - Parameter normal: makes the answer; called if there is one.
  final func perform(
    _ step: Step?, _ entry: inout JournalEntry, on connection: any SimulatedConnection,
    normal: (JournalEntry) -> SimulatedAnswer
  ) {
    let player = FaultPlayer(step, &entry, service.environment, connection)
    guard player.isAnswered else { return player.play() }
    var answer = normal(entry)
    (entry.status, entry.reason) = (answer.status, answer.reason)
    if let body = step?.body { answer.body = Array(body.utf8) }
    if let retryAfter = step?.retryAfter { answer.headers.append(HeaderField("retry-after", retryAfter)) }
    player.play { [answer, stream = entry.stream] in
      connection.respond(stream, status: answer.status, headers: answer.headers, body: answer.body)
    }
  }

  final func noteViolation(_ what: String) { service.noteViolation(what, connection: number) }
  final func connectionEnded() { service.connectionEnded(number) }

  func protocolViolated(_ what: String, on session: ServerSession) { noteViolation(what) }
  func sessionEnded(_ reason: TransportEnd, of session: ServerSession) { connectionEnded() }
}
