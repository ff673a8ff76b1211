import Gateway
import Reactor
import Settings

enum GatewayCommand: Command {
  static let page = CommandPage(
    "gateway", "accept requests of GCM, FCM and old APNs senders, and of devices",
    forms: [.form("--config")],
    """
    Opens the listeners of the setting `gateway`. On SIGTERM or SIGINT it accepts nothing more, answers the open requests and
    exits with status 0; a second signal ends it at once. On SIGHUP, or when the configuration or a certificate file changes, it
    loads applications and certificates without ending a connection. Senders need a key: `pushfleet keys create`. A gateway has
    no state: any number may run side by side.
    """,
    [.config()],
    example: "pushfleet gateway --config pushfleet.json5")

  static func run(_ options: Options) throws {
    Signals.block([Signals.hangUp])
    let configuration = try options.configuration()
    let gateway = try Gateway(
      configuration, version: Pushfleet.version, letters: LetterRunner(configuration: configuration),
      explain: Explanation.explain, file: options.configurationFile, reload: options.configuration)
    try gateway.run()
  }
}

enum ConsoleCommand: Command {
  static let page = CommandPage(
    "console", "show and control the fleet in a browser",
    forms: [.form("--config", ["--listen"])],
    """
    Serves the console and its HTTP interface (`/v1/fleet`) until SIGTERM or SIGINT. A gateway serves the console too, at
    `/console/` of `gateway.http.listen`. Users log in with a key of the rights view or operate: `pushfleet keys create`. With an
    address beyond this machine the console needs `gateway.http.certificate`.
    """,
    [.config(), .option("listen", "ADDRESS", "host and port (127.0.0.1:8900)")],
    example: "pushfleet console --config pushfleet.json5")

  static func run(_ options: Options) throws {
    Signals.block([Signals.hangUp])
    let listen: Endpoint
    do throws(EndpointError) { listen = try Endpoint(parsing: options["listen"] ?? "127.0.0.1:8900", defaultPort: 8_900) } catch
    {
      throw CommandFailure(.usage, "--listen: \(error)")
    }
    func settings() throws(ConfigurationError) -> Configuration { try options.configuration().console(at: listen) }
    let configuration = try settings()
    let gateway = try Gateway(
      configuration, version: Pushfleet.version, letters: LetterRunner(configuration: configuration),
      explain: Explanation.explain, file: options.configurationFile, reload: settings)
    let scheme = configuration.gateway?.http?.identity == nil ? "http" : "https"
    try gateway.run { Terminal.print("the console is at \(scheme)://\(listen)/console/") }
  }
}
