import Gateway
import Reactor

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
