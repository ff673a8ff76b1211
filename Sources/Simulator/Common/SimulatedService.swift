import PushCore
import Wire

/// A provider's simulator without sockets: makes a machine for each connection. Tests can drive it in memory. Each provider has a
/// subclass with its settings.
public class SimulatedService {
  public typealias Make = @Sendable (Journal, Turn) throws -> SimulatedService

  public let journal: Journal
  let time: Turn
  private var script: Script
  /// Called before the script with a token, or with a subscription's id. The script decides if it returns nil.
  public var decide: (([UInt8]) -> Step?)?
  private var connections: [Int: AnyObject] = [:]
  private var connectionCount = 0

  init(_ script: Script, _ journal: Journal, _ time: Turn) {
    self.journal = journal
    self.time = time
    self.script = script
  }

  /// Only APNs asks for client certificates.
  var clientAuthority: String? { nil }
  /// The protocols for ALPN, by preference.
  var protocols: [String] { ["h2"] }

  /// Makes the machine for a new connection. It must not outlive the service.
  public func accept() -> any Machine { fatalError("each provider's service makes its own connections") }

  public var openConnections: Int { connections.count }

  /// Replaces the script for later requests. Connections stay open.
  public func play(_ script: Script) { self.script = script }

  /// A new id, or the random part of an access token.
  func makeID() -> [UInt8] { UUIDText.random(using: &time.random) }

  /// The step for the next request of `token`; nil for the normal answer.
  func step(for token: [UInt8]) -> Step? { decide?(token) ?? script.next(token) }

  /// Keeps a new connection until it ends.
  func keep<Connection: AnyObject>(_ make: (_ number: Int) -> Connection) -> Connection {
    connectionCount += 1
    let connection = make(connectionCount)
    connections[connectionCount] = connection
    return connection
  }

  func connectionEnded(_ number: Int) { connections[number] = nil }
}
