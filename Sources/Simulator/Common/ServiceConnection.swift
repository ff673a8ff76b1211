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

  final func noteViolation(_ what: String) { service.noteViolation(what, connection: number) }
  final func connectionEnded() { service.connectionEnded(number) }

  func protocolViolated(_ what: String, on session: ServerSession) { noteViolation(what) }
  func sessionEnded(_ reason: TransportEnd, of session: ServerSession) { connectionEnded() }
}
