import Foundation
import HTTP2
import TLS
import Wire

/// The APNs simulator without its sockets: makes a machine for each connection. A test drives them in memory.
public final class APNsService: SimulatedService {
  public let configuration: APNsConfiguration
  public let journal: Journal
  let environment: SimulatorEnvironment
  let player: ScriptPlayer
  /// Asked before the script what happens to a request for a token; nil leaves it to the script.
  public var decide: (([UInt8]) -> Step?)?
  let providerKey: VerifyingKey?
  let topics: [[UInt8]]
  var keyTokens = KeyTokens()
  var channels = ChannelBook()
  var trustsCertificates: Bool { configuration.clientAuthority != nil }
  private var connections: [Int: APNsConnection] = [:]
  private var connectionCount = 0

  /// - Throws: when the provider key is none.
  public init(configuration: APNsConfiguration, journal: Journal, environment: SimulatorEnvironment) throws(CredentialError) {
    self.configuration = configuration
    self.journal = journal
    self.environment = environment
    player = ScriptPlayer(configuration.script)
    topics = configuration.topics.map { Array($0.utf8) }
    if let pem = configuration.providerKey { providerKey = try VerifyingKey(pem: pem) } else { providerKey = nil }
  }

  /// Connections open now.
  public var openConnections: Int { connections.count }

  /// The machine for a new connection. It must not outlive the service.
  public func accept() -> ServerSession {
    connectionCount += 1
    let connection = APNsConnection(self, number: connectionCount)
    connections[connectionCount] = connection
    var http2 = configuration.http2
    http2.maxConcurrentStreams = trustsCertificates ? configuration.maxConcurrentStreams : configuration.initialStreams
    return ServerSession(configuration: http2, handler: connection)
  }

  /// Requests from now on provoke what another script says; connections stay.
  public func play(_ script: Script) { player.replace(script) }

  /// Base64 of random bytes, as APNs gives them out.
  func makeChannelID() -> [UInt8] {
    let bytes = environment.makeUUID().filter { $0 != UInt8(ascii: "-") }
    return Array(Data(bytes.prefix(24)).base64EncodedString().utf8)
  }

  func connectionEnded(_ number: Int) { connections[number] = nil }
}
