import HTTP2
import TLS
import Wire

/// The FCM simulator without sockets: makes a machine for each connection. Tests can drive it in memory.
public final class FCMService: SimulatedService {
  public let configuration: FCMConfiguration
  public let journal: Journal
  let environment: SimulatorEnvironment
  let player: ScriptPlayer
  /// Called before the script with a token; the script decides if it returns nil.
  public var decide: (([UInt8]) -> Step?)?
  let issuer: AccessTokenIssuer
  private var connections: [Int: FCMConnection] = [:]
  private var connectionCount = 0
  private var messageCount = 0

  /// - Throws: if the account key can't be read.
  public init(configuration: FCMConfiguration, journal: Journal, environment: SimulatorEnvironment) throws(CredentialError) {
    self.configuration = configuration
    self.journal = journal
    self.environment = environment
    player = ScriptPlayer(configuration.script)
    issuer = try AccessTokenIssuer(configuration, makeUUID: environment.makeUUID)
  }

  public var openConnections: Int { connections.count }

  /// Makes the machine for a new connection. It must not outlive the service.
  public func accept() -> any Machine {
    connectionCount += 1
    let connection = FCMConnection(self, number: connectionCount)
    connections[connectionCount] = connection
    return ServerSession(configuration: configuration.http2, handler: connection)
  }

  /// Replaces the script for later requests. Connections stay open.
  public func play(_ script: Script) { player.replace(script) }

  func connectionEnded(_ number: Int) { connections[number] = nil }

  /// `0:<milliseconds>%<number>`, similar to the ids of the real service.
  func nextMessageID() -> [UInt8] {
    messageCount += 1
    return Array("0:\(environment.wallClock())%\(messageCount)".utf8)
  }
}
