import AMQP
import Foundation
import PushCore
import Reactor

enum FeedbackCommand: Command {
  static let page = CommandPage(
    "feedback", "print feedback events, dead and doubtful tokens, and acknowledge them",
    forms: [
      .form("--config", ["--follow"], ["--exec"], ["--json"]),
      .form("--config", ["--app"], ["--event"], ["--limit"], [.either(["--peek", "--exec"])], ["--json"]),
    ],
    """
    Prints each event of the feedback queue as one line of JSON and acknowledges it once it is written. Ends when the queue
    is empty. A pipe's reader may die with what it has not read: --exec acknowledges what its command has dealt with.
    """,
    [
      .config(), .flag("follow", "stay and print what comes, until interrupted"),
      .option(
        "exec", "COMMAND",
        "give the events to a command of the shell, up to 500 lines at a time on its standard input; they are acknowledged "
          + "when it ends with status 0. Otherwise they stay in the queue, and this command ends with status 69"),
      .flag("peek", "look without acknowledging"),
      .option("app", "APP", "only this application's events; the others are looked at"),
      .option(
        "event", "EVENT",
        "only NotRegistered, InvalidRegistration, MismatchSenderId, Moved or Stale; the others are looked at"),
      .option("limit", "N", "end after so many events"), .json("changes nothing: events are lines of JSON anyhow"),
    ],
    """
    What is looked at stays in the queue, but the broker counts a look as a delivery: after 50 it becomes a dead letter. Who regularly
    wants a part of the events binds a queue of its own to PREFIX.events.

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
      throw CommandFailure(.usage, "--follow takes every event: --app, --event, --limit and --peek exclude it")
    }
    let configuration = try options.configuration()
    selection.app = options["app"] == nil ? nil : try configuration.application(options)
    let client = try FeedbackReader(
      configuration, selection, follows: options.has("follow"), command: options["exec"].map(ShellCommand.init))
    try client.run()
  }
}

/// Which events a reader wants.
struct FeedbackSelection {
  var app: [UInt8]?
  var event: String?
  var limit: Int?
  var isPeek = false

  /// Some that come are left in the queue.
  var isSelective: Bool { app != nil || event != nil || limit != nil || isPeek }

  func takes(_ body: [UInt8]) -> Bool {
    guard app != nil || event != nil else { return true }
    guard let document = try? JSONDocument(body), document.kind(document.root) == .object else { return false }
    func text(_ field: String) -> [UInt8]? {
      document.value(field, of: document.root).flatMap { document.kind($0) == .string ? document.string($0) : nil }
    }
    return (app == nil || text("app") == app) && (event == nil || text("event") == event.map { Array($0.utf8) })
  }
}
