import HTTP2
import TLS

/// The FCM simulator without its sockets: makes a machine for each connection. A test drives them in memory.
public final class FCMService: SimulatedService {
  public let configuration: FCMConfiguration
  public let journal: Journal
  let environment: SimulatorEnvironment
  let player: ScriptPlayer
  /// Asked before the script what happens to a request for a token; nil leaves it to the script.
  public var decide: (([UInt8]) -> Step?)?
  let issuer: AccessTokenIssuer
  private var connections: [Int: FCMConnection] = [:]
  private var connectionCount = 0
  private var messageCount = 0

  /// - Throws: when the account key is none.
  public init(configuration: FCMConfiguration, journal: Journal, environment: SimulatorEnvironment) throws(CredentialError) {
    self.configuration = configuration
    self.journal = journal
    self.environment = environment
    player = ScriptPlayer(configuration.script)
    issuer = try AccessTokenIssuer(configuration, makeUUID: environment.makeUUID)
  }

  /// Connections open now.
  public var openConnections: Int { connections.count }

  /// The machine for a new connection. It must not outlive the service.
  public func accept() -> ServerSession {
    connectionCount += 1
    let connection = FCMConnection(self, number: connectionCount)
    connections[connectionCount] = connection
    return ServerSession(configuration: configuration.http2, handler: connection)
  }

  /// Requests from now on provoke what another script says; connections stay.
  public func play(_ script: Script) { player.replace(script) }

  func connectionEnded(_ number: Int) { connections[number] = nil }

  /// `0:<milliseconds>%<number>`, in the shape of the real service's.
  func nextMessageID() -> [UInt8] {
    messageCount += 1
    return Array("0:\(environment.wallClock())%\(messageCount)".utf8)
  }
}
