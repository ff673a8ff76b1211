import TLS
import Wire

/// A provider's simulator without sockets: makes a machine for each connection. Tests can drive it in memory.
public protocol SimulatedService: AnyObject, SendableMetatype {
  associatedtype Configuration: SimulatorConfiguration
  var journal: Journal { get }
  init(configuration: Configuration, journal: Journal, environment: SimulatorEnvironment) throws(CredentialError)
  /// Makes the machine for a new connection. It must not outlive the service.
  func accept() -> any Machine
  /// Replaces the script for later requests. Connections stay open.
  func play(_ script: Script)
}

/// The settings, the script and the open connections of a simulated service.
public class ScriptedService<Configuration: SimulatorConfiguration> {
  public let configuration: Configuration
  public let journal: Journal
  let environment: SimulatorEnvironment
  private var player: ScriptPlayer
  /// Called before the script with a token, or with a subscription's id. The script decides if it returns nil.
  public var decide: (([UInt8]) -> Step?)?
  private var connections: [Int: AnyObject] = [:]
  private var connectionCount = 0

  init(_ configuration: Configuration, _ journal: Journal, _ environment: SimulatorEnvironment) {
    self.configuration = configuration
    self.journal = journal
    self.environment = environment
    player = ScriptPlayer(configuration.script)
  }

  public var openConnections: Int { connections.count }

  public func play(_ script: Script) { player = ScriptPlayer(script) }

  /// The step for the next request of `token`; nil for the normal answer.
  func step(for token: [UInt8]) -> Step? { decide?(token) ?? player.next(token) }

  /// Keeps a new connection until it ends.
  func keep<Connection: AnyObject>(_ make: (_ number: Int) -> Connection) -> Connection {
    connectionCount += 1
    let connection = make(connectionCount)
    connections[connectionCount] = connection
    return connection
  }

  func connectionEnded(_ number: Int) { connections[number] = nil }

  func noteViolation(_ what: String, connection: Int) {
    journal.noteViolation(what, connection: connection, at: environment.wallClock())
  }
}
