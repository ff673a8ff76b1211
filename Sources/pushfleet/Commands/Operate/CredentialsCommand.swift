import DeviceRegistry
import Settings

enum CredentialsCommand: Command {
  static let page = CommandPage(
    "credentials", "pause and resume credentials and senders",
    forms: [
      .action("[list]", "--config", ["--json"]),
      .action("pause", "--config", ["--until"], ["--reason"], ["--json"], "CREDENTIAL"),
      .action("resume", "--config", ["--reason"], ["--json"], "CREDENTIAL"),
    ],
    """
    Nothing is sent with a paused credential; every worker follows within two seconds. Its pushes wait on the retry ladder, at
    first for a second and later for up to a minute at a time, so the last ones are sent a minute after resume. No attempt is
    counted, and times to live continue. Pushes with other credentials continue, also those of the same request. Requests for now
    or never (time_to_live 0) become dead letters.

    A sender is paused with all credentials that it doesn't share with its application. To stop a whole application, see
    `pushfleet apps`.
    """,
    [
      .config(", which names the registry"),
      .option("until", "TIME", "resume then: in 90s, 15m, 2h, 7d, or at 2026-11-20T21:22:00Z"),
      OperatorSession.reasonOption,
      .operand("CREDENTIAL", "APP/apns, APP/fcm or APP/webpush; APP/senders/SENDER, or one of its: APP/senders/SENDER/fcm"),
      .json("one JSON object for each credential"),
    ],
    example: "pushfleet credentials pause com.example.app/fcm --config pushfleet.json5 --until 2h --reason \"quota\"")

  static func run(_ options: Options) throws {
    let session = try OperatorSession(options)
    try session.control(session.configuration.apps.flatMap(\.pausable.keys).sorted(), "CREDENTIAL", options) { .credential($0) }
  }
}
