import Foundation
import HTTP2
import TLS
import Wire

/// The APNs simulator without sockets: makes a machine for each connection. Tests can drive it in memory.
public final class APNsService: SimulatedService {
  public let configuration: APNsConfiguration
  public let journal: Journal
  let environment: SimulatorEnvironment
  let player: ScriptPlayer
  /// Called before the script with a token; the script decides if it returns nil.
  public var decide: (([UInt8]) -> Step?)?
  let providerKey: VerifyingKey?
  let topics: [[UInt8]]
  var keyTokens = KeyTokens(minutes: 20)
  var channels = ChannelRegistry()
  var trustsCertificates: Bool { configuration.clientAuthority != nil }
  private var connections: [Int: APNsConnection] = [:]
  private var connectionCount = 0

  /// - Throws: if the provider key can't be read.
  public init(configuration: APNsConfiguration, journal: Journal, environment: SimulatorEnvironment) throws(CredentialError) {
    self.configuration = configuration
    self.journal = journal
    self.environment = environment
    player = ScriptPlayer(configuration.script)
    topics = configuration.topics.map { Array($0.utf8) }
    if let pem = configuration.providerKey { providerKey = try VerifyingKey(pem: pem) } else { providerKey = nil }
  }

  public var openConnections: Int { connections.count }

  /// Makes the machine for a new connection. It must not outlive the service.
  public func accept() -> any Machine {
    connectionCount += 1
    let connection = APNsConnection(self, number: connectionCount)
    connections[connectionCount] = connection
    var http2 = configuration.http2
    http2.maxConcurrentStreams = trustsCertificates ? configuration.maxConcurrentStreams : configuration.initialStreams
    return ServerSession(configuration: http2, handler: connection)
  }

  /// Replaces the script for later requests. Connections stay open.
  public func play(_ script: Script) { player.replace(script) }

  /// Base64 of random bytes, like the ids of APNs.
  func makeChannelID() -> [UInt8] {
    let bytes = environment.makeUUID().filter { $0 != UInt8(ascii: "-") }
    return Array(Data(bytes.prefix(24)).base64EncodedString().utf8)
  }

  func connectionEnded(_ number: Int) { connections[number] = nil }
}
