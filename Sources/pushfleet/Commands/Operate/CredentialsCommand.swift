import DeviceRegistry
import Settings

enum CredentialsCommand: Command {
  static let page = CommandPage(
    "credentials", "pause, resume and drain credentials and senders",
    forms: RegistrySession.forms("CREDENTIAL"),
    """
    Every worker follows within two seconds. Pushes with other credentials continue, also those of the same request. A sender's
    order counts for all its credentials that it doesn't share with its application. `pushfleet apps` stops an application.

    pause: nothing is sent with the credential. Its pushes wait on the retry ladder, at first for a second and later for up to a
    minute at a time, so the last ones are sent a minute after resume. No attempt is counted, and times to live continue.
    Requests for now or never (time_to_live 0) become dead letters.

    drain sends what waits and refuses the pushes of new requests: they become dead letters.

    discard ends the pushes of a paused credential that are on the ladder or in the hold queue, for good. They fail as Cancelled,
    without a dead letter, when they return from there, also if the credential is resumed before. Later pushes wait.
    """,
    .list(
      RegistrySession.options + [
        .operand("CREDENTIAL", "APP/apns, APP/fcm or APP/webpush; APP/senders/SENDER, or one of its: APP/senders/SENDER/fcm"),
        .json("one JSON object for each credential"),
      ]),
    example: "pushfleet credentials pause com.example.app/fcm --config pushfleet.json5 --until 2h --reason \"quota\"")

  static func run(_ options: Options) throws {
    let session = try RegistrySession(options)
    let names = session.configuration.apps.flatMap(\.pausable.keys).sorted()
    try session.control(names, "a credential", options, ControlSubject.credential) { credential in
      if !options.has("yes") { try confirm(session, credential) }
      return .discard(credential)
    }
  }

  /// Asks the operator, with the number of waiting pushes that the workers know.
  private static func confirm(_ session: RegistrySession, _ credential: ControlSubject) throws {
    guard Terminal.canAsk else { throw CommandFailure(.usage, "discard ends pushes for good: use --yes") }
    guard try session.store.control(credential).mode(at: RegistrySession.now) == .paused else { return }
    var count = 0
    try FleetWatch(session.configuration, every: nil) { picture in
      count = picture.workers.flatMap(\.waiting).reduce(0) { $1.credential == credential.text ? $0 + $1.pushes : $0 }
    }.run()
    guard Terminal.confirms("About \(Figures.count(count)) pushes wait for \(credential.text). Discard them for good?") else {
      throw CommandFailure(.interrupted, "nothing was discarded")
    }
  }
}
