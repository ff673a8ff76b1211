import HTTP2
import Wire

/// The web push simulator without sockets: makes a machine for each connection. Tests can drive it in memory.
public final class WebPushService: SimulatedService {
  let configuration: WebPushConfiguration
  var tokens: VAPIDTokens
  override var protocols: [String] { configuration.isHTTP1 ? ["http/1.1"] : ["h2", "http/1.1"] }

  public init(configuration: WebPushConfiguration, journal: Journal, time: Turn) {
    tokens = VAPIDTokens(onlyKey: configuration.applicationServerKey)
    self.configuration = configuration
    super.init(configuration.script, journal, time)
  }

  public override func accept() -> any Machine {
    let connection = keep { WebPushConnection(self, number: $0) }
    if configuration.isHTTP1 { return HTTP1Connection(connection) }
    return NegotiatedConnection { [http2 = configuration.http2] isHTTP1 in
      guard isHTTP1 else { return ServerSession(configuration: http2, handler: connection) }
      return HTTP1Connection(connection)
    }
  }
}
