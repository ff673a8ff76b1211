import PushCore

enum FeedbackCommand: Command {
  static let page = CommandPage(
    "feedback", "print feedback events (dead and doubtful tokens), and acknowledge them",
    forms: [
      .form("--config", ["--follow"], ["--exec"], ["--json"]),
      .form("--config", ["--app"], ["--event"], ["--limit"], [.either(["--peek", "--exec"])], ["--json"]),
    ],
    """
    Prints each event of the feedback queue as one line of JSON, and acknowledges it once it is written. Ends when the queue
    is empty. If the reader of a pipe crashes, the events that it hasn't read are lost; with --exec, events are acknowledged
    only after the command has processed them.
    """,
    [
      .config(), .flag("follow", "stay and print new events until interrupted"),
      .option(
        "exec", "COMMAND",
        "pipe the events to a shell command, up to 500 lines at a time on its standard input; they are acknowledged "
          + "when it ends with status 0. Otherwise they stay in the queue, and pushfleet ends with status 69"),
      .flag("peek", "print without acknowledging"),
      .option("app", "APP", "only events of this application; the others are delivered, but stay"),
      .option(
        "event", "EVENT",
        "only NotRegistered, InvalidRegistration, MismatchSenderId, Moved or Stale; the others stay"),
      .option("limit", "N", "end after N events"), .json("no effect: events are always lines of JSON"),
    ],
    """
    Events that aren't acknowledged stay in the queue, but each time the broker counts a delivery: after 50 an event becomes a
    dead letter. If you regularly need only some of the events, bind your own queue to PREFIX.events.

    Prune a NotRegistered token only if it was registered before invalid_since (null: before observed_at).
    """,
    example: "pushfleet feedback --config pushfleet.json5 --event NotRegistered --exec ./prune-tokens")

  static func run(_ options: Options) throws {
    var selection = FeedbackSelection()
    selection.event = try options.choice("event", of: FeedbackEvent.Event.allCases.map(\.rawValue))
    selection.limit = try options.integer("limit", in: 1...1_000_000)
    selection.isPeek = options.has("peek")
    if selection.isPeek, options["exec"] != nil { throw CommandFailure(.usage, "--peek and --exec exclude each other") }
    if options.has("follow"), options["app"] != nil || selection.isSelective {
      throw CommandFailure(.usage, "--follow consumes every event: --app, --event, --limit and --peek exclude it")
    }
    let configuration = try options.configuration()
    selection.app = try configuration.givenApp(options)
    let client = try FeedbackReader(
      configuration, selection, follows: options.has("follow"), command: options["exec"].map(ShellCommand.init))
    try client.run()
  }
}

struct FeedbackSelection {
  var app: [UInt8]?
  var event: String?
  var limit: Int?
  var isPeek = false

  /// True if some of the delivered events stay in the queue.
  var isSelective: Bool { app != nil || event != nil || limit != nil || isPeek }

  func takes(_ body: [UInt8]) -> Bool {
    guard app != nil || event != nil else { return true }
    guard let document = try? JSONDocument(body), document.kind(document.root) == .object else { return false }
    return (app == nil || document.string("app") == app)
      && (event == nil || document.string("event") == event.map { Array($0.utf8) })
  }
}
