import Gateway
import Settings

enum GatewayCommand: Command {
  static let page = CommandPage(
    "gateway", "serve senders of GCM, FCM and old APNs, and devices",
    forms: [.form("--config")],
    """
    Opens the doors that the setting `gateway` names, until SIGTERM or SIGINT; then it takes nothing more, answers what it has taken and
    exits 0. A second signal ends it at once. SIGHUP, and a change of the configuration or of a certificate's file, takes over applications
    and certificates without ending a connection. Senders need a key: `pushfleet keys create`. It keeps nothing: any number may run
    side by side.
    """,
    [.config()],
    example: "pushfleet gateway --config pushfleet.json5")

  static func run(_ options: Options) throws {
    let gateway = try Gateway(
      try options.configuration(), version: Pushfleet.version, file: options.configurationFile
    ) { () throws(ConfigurationError) in try options.configuration() }
    try gateway.run()
  }
}
