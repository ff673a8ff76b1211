import Foundation
import HTTP2
import TLS
import Wire

/// The APNs simulator without sockets: makes a machine for each connection. Tests can drive it in memory.
public final class APNsService: SimulatedService {
  let configuration: APNsConfiguration
  let providerKey: VerifyingKey?
  let topics: [[UInt8]]
  var keyTokens = KeyTokens(minutes: 20)
  var channels = ChannelRegistry()
  override var clientAuthority: String? { configuration.clientAuthority }
  var trustsCertificates: Bool { clientAuthority != nil }

  /// - Throws: if the provider key can't be read.
  public init(configuration: APNsConfiguration, journal: Journal, time: Turn) throws(CredentialError) {
    topics = configuration.topics.map { Array($0.utf8) }
    if let pem = configuration.providerKey { providerKey = try VerifyingKey(pem: pem) } else { providerKey = nil }
    self.configuration = configuration
    super.init(configuration.script, journal, time)
  }

  public override func accept() -> any Machine {
    var http2 = configuration.http2
    http2.maxConcurrentStreams = trustsCertificates ? configuration.maxConcurrentStreams : 1
    return ServerSession(configuration: http2, handler: keep { APNsConnection(self, number: $0) })
  }

  /// Base64 of random bytes, like the ids of APNs.
  func makeChannelID() -> [UInt8] {
    let bytes = makeID().filter { $0 != UInt8(ascii: "-") }
    return Array(Data(bytes.prefix(24)).base64EncodedString().utf8)
  }
}
