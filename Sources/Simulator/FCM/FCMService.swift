import HTTP2
import TLS
import Wire

/// The FCM simulator without sockets: makes a machine for each connection. Tests can drive it in memory.
public final class FCMService: SimulatedService {
  let configuration: FCMConfiguration
  let issuer: AccessTokenIssuer
  private var messageCount = 0

  /// - Throws: if the account key can't be read.
  public init(configuration: FCMConfiguration, journal: Journal, time: Turn) throws(CredentialError) {
    issuer = try AccessTokenIssuer(configuration)
    self.configuration = configuration
    super.init(configuration.script, journal, time)
  }

  public override func accept() -> any Machine {
    ServerSession(configuration: configuration.http2, handler: keep { FCMConnection(self, number: $0) })
  }

  /// `0:<milliseconds>%<number>`, similar to the ids of the real service.
  func nextMessageID() -> [UInt8] {
    messageCount += 1
    return Array("0:\(time.wallClock)%\(messageCount)".utf8)
  }
}
