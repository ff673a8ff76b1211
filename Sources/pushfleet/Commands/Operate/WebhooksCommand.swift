import DeviceRegistry
import Reactor
import Settings
import Webhooks

enum WebhooksCommand: Command {
  static let page = CommandPage(
    "webhooks", "post events to https addresses",
    forms: [
      .action("[serve]", "--config"),
      .action("list", "--config", ["--json"]),
      .action("pause", "--config", ["--until"], ["--reason"], ["--json"], "WEBHOOK"),
      .action("resume", "--config", ["--reason"], ["--json"], "WEBHOOK"),
    ],
    """
    serve posts the events of all configured webhooks until SIGTERM or SIGINT: results, feedback, receipts and
    operations, up to 500 in one call, signed as Standard Webhooks describes. Events are acknowledged after an answer 2xx. After
    another answer, or none, they are posted again, with growing pauses up to an hour. After 410 the webhook is paused. On
    SIGHUP, or when the configuration or a webhook's file changes, it loads all webhooks. Any number may run side by side.

    pause and resume need a registry. The events of a paused webhook wait in its queue, which keeps the newest 250,000.
    """,
    [
      .config(), RegistrySession.untilOption, RegistrySession.reasonOption,
      .operand("WEBHOOK", "the application and the webhook's name: APP/NAME"),
      .json("one JSON object for each webhook"),
    ],
    example: "pushfleet webhooks --config pushfleet.json5")

  static func run(_ options: Options) throws {
    if options.action == "serve" { return try serve(options) }
    let session = try RegistrySession(options)
    let names = session.configuration.apps.flatMap { app in app.webhooks.map { "\(app.id)/\($0.name)" } }
    try session.control(names, "a webhook", options, ControlSubject.webhook)
  }

  private static func serve(_ options: Options) throws {
    Signals.block([Signals.hangUp])
    let service = try WebhookService(
      try options.configuration(), version: Pushfleet.version, file: options.configurationFile, reload: options.configuration)
    try service.run()
  }
}
