import HTTP2
import TLS
import Wire

/// The web push simulator without sockets: makes a machine for each connection. Tests can drive it in memory.
public final class WebPushService: SimulatedService {
  public let configuration: WebPushConfiguration
  public let journal: Journal
  let environment: SimulatorEnvironment
  let player: ScriptPlayer
  /// Called before the script with a subscription's id; the script decides if it returns nil.
  public var decide: (([UInt8]) -> Step?)?
  var tokens: VAPIDTokens
  private var connections: [Int: WebPushConnection] = [:]
  private var connectionCount = 0

  public init(configuration: WebPushConfiguration, journal: Journal, environment: SimulatorEnvironment) {
    self.configuration = configuration
    self.journal = journal
    self.environment = environment
    player = ScriptPlayer(configuration.script)
    tokens = VAPIDTokens(onlyKey: configuration.applicationServerKey)
  }

  public var openConnections: Int { connections.count }

  /// Makes the machine for a new connection. It must not outlive the service.
  public func accept() -> any Machine {
    connectionCount += 1
    let connection = WebPushConnection(self, number: connectionCount)
    connections[connectionCount] = connection
    if configuration.isHTTP1 { return HTTP1Connection(connection) }
    return NegotiatedConnection { [http2 = configuration.http2] isHTTP1 in
      guard isHTTP1 else { return ServerSession(configuration: http2, handler: connection) }
      return HTTP1Connection(connection)
    }
  }

  /// Replaces the script for later requests. Connections stay open.
  public func play(_ script: Script) { player.replace(script) }

  func connectionEnded(_ number: Int) { connections[number] = nil }
}
