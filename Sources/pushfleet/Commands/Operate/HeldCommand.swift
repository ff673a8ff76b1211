import Broker
import DeviceRegistry

enum HeldCommand: Command {
  static let page = CommandPage(
    "held", "list, show and drop requests that wait in hold queues",
    forms: [
      .action("list", "--config", LetterFilter.item, ["--json"]),
      .action("show", "--config", LetterFilter.item, ["--json"], ["ID..."]),
      .action("drop", "--config", LetterFilter.item, ["--because"], ["--yes"], ["--dry-run"], ["--json"], ["ID..."]),
    ],
    """
    An application's requests wait in its hold queue while an operator has paused it, or while its provider is in trouble. list
    counts them by reason and lane, show prints them in full. Both look at the first 1,000 and give them back in their order.
    Requests that a worker has in hand are not shown. --app is needed if there are several applications.

    The broker counts each look as a return, also that of a drop with a filter. Workers send a request that has returned twice,
    but one at a time. After 50 returns the broker makes it a dead letter. So look seldom.

    drop deletes requests for good, without an outcome. Pause the application first: otherwise workers may send them meanwhile.
    """,
    .list(
      [.config()] + LetterFilter.entries(of: "requests", since: "held") + [
        RegistrySession.becauseOption, .flag("dry-run", "only say what would be done"),
        .flag("yes", "don't ask; needed without a terminal"),
        .json("one JSON object per group or request; drop prints one at the end"), .option("id", "ID"),
      ]),
    example: "pushfleet held list --config pushfleet.json5 --app com.example.app")

  static func run(_ options: Options) throws {
    let filter = try LetterFilter(options, now: RegistrySession.now)
    let place = LetterPlace(.held(String(decoding: try options.configuration().app(options), as: UTF8.self)))
    switch options.action {
    case "list": try place.list(options, filter)
    case "show": try place.show(options, filter)
    default: try place.drop(options, filter)
    }
  }

  /// Drops what waits in the queue of a paused application or lane.
  static func discard(_ options: Options, _ session: RegistrySession, _ subject: ControlSubject, _ queue: LetterQueue) throws {
    try LetterPlace(queue).drop(options, LetterFilter(app: queue.heldApp), as: "discard") {
      guard try session.store.control(subject).mode(at: RegistrySession.now) == .paused else {
        throw CommandFailure(.badInput, subject.refusalOfDiscard)
      }
    }
  }
}
