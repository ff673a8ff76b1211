import HTTP2
import Wire

/// The web push simulator without sockets: makes a machine for each connection. Tests can drive it in memory.
public final class WebPushService: ScriptedService<WebPushConfiguration>, SimulatedService {
  var tokens: VAPIDTokens

  public init(configuration: WebPushConfiguration, journal: Journal, environment: SimulatorEnvironment) {
    tokens = VAPIDTokens(onlyKey: configuration.applicationServerKey)
    super.init(configuration, journal, environment)
  }

  public func accept() -> any Machine {
    let connection = keep { WebPushConnection(self, number: $0) }
    if configuration.isHTTP1 { return HTTP1Connection(connection) }
    return NegotiatedConnection { [http2 = configuration.http2] isHTTP1 in
      guard isHTTP1 else { return ServerSession(configuration: http2, handler: connection) }
      return HTTP1Connection(connection)
    }
  }
}
