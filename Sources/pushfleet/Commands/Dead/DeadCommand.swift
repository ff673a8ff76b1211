import Broker
import PushCore

enum DeadCommand: Command {
  static let page = CommandPage(
    "dead", "list, show, replay and drop dead letters",
    forms: [
      .action("list", "--config", LetterFilter.item, ["--json"], .hidden(["ID"])),
      .action("show", "--config", LetterFilter.item, ["--json"], ["ID..."]),
      .action("replay", "--config", LetterFilter.item, ["--rate"], ["--because"], ["--dry-run"], ["--json"], ["ID..."]),
      .action("drop", "--config", LetterFilter.item, ["--because"], ["--yes"], ["--dry-run"], ["--json"], ["ID..."]),
    ],
    """
    Dead letters are requests, registry changes and acknowledgements that will not be tried again. list counts them by
    application, error, reason and origin; show prints them in full. Both leave the queue and its order as they are.

    replay sends letters back to where they came from: requests and pages of broadcasts to their lanes, registry changes and
    acknowledgements to their queues. First fix the cause that the reason names. Each letter is removed once the broker has
    confirmed its copy. After an interruption, run it again for the rest. Letters that become dead again wait for the next replay.

    drop deletes letters for good. On a terminal it asks first; elsewhere it needs --yes.
    """,
    .list(
      [.config()] + LetterFilter.entries(of: "letters", since: "given up") + [
        .option("rate", "N/s", "replay at most N letters a second; also N/m and N/h"), RegistrySession.becauseOption,
        .flag("dry-run", "only say what would be done"), .flag("yes", "don't ask"),
        .json("one JSON object per group or letter; replay and drop print one at the end"), .option("id", "ID"),
      ]),
    example: "pushfleet dead replay --config pushfleet.json5 --app com.example.app --error Unavailable --since 2h --rate 100/s")

  static func run(_ options: Options) throws {
    let filter = try LetterFilter(options, now: RegistrySession.now)
    switch options.action {
    case "list": try LetterPlace.dead.list(options, filter)
    case "show": try LetterPlace.dead.show(options, filter)
    case "replay": try replay(options, filter)
    default: try LetterPlace.dead.drop(options, filter)
    }
  }

  // MARK: replay

  private static func replay(_ options: Options, _ filter: LetterFilter) throws {
    let isDry = options.has("dry-run")
    let replay = try LetterReplay(try options.configuration(), filter, rate: try rate(options["rate"]), isDry: isDry)
    if isDry {
      try replay.run()
    } else {
      try RegistrySession.recording(options, "dead replay", .dead, filter, reasonIn: "because", replay)
    }
    if options.asJSON { Terminal.print(json(replay, isDry)) } else { tell(replay, isDry) }
    if replay.isStopped { throw CommandFailure(.interrupted, "interrupted: \(replay.progress)") }
    let refused = replay.refused.values.reduce(0, +)
    if refused > 0 {
      throw CommandFailure(.badInput, "\(LetterPlace.dead.count(refused)) can't be replayed: left in the queue")
    }
  }

  private static func tell(_ replay: LetterReplay, _ isDry: Bool) {
    let total = replay.sent.values.reduce(0, +)
    Terminal.say(
      isDry ? "\(LetterPlace.dead.count(total)) would be replayed" : "pushfleet: \(LetterPlace.dead.count(total)) replayed")
    for (queue, count) in replay.sent.sorted(by: { $0.key < $1.key }) {
      Terminal.print("\(Figures.count(count)) to \(replay.topology.name(queue))")
    }
    for (reason, count) in replay.refused.sorted(by: { $0.key < $1.key }) {
      Terminal.print("\(Figures.count(count)) not replayed: \(reason.printable)")
    }
  }

  static func json(_ replay: LetterReplay, _ isDry: Bool) -> JSONObject {
    func counts(_ counts: [String: Int], _ name: (String) -> String = { $0 }) -> JSONObject {
      JSONObject(counts.sorted { $0.key < $1.key }.map { (name($0.key), $0.value) })
    }
    return [
      isDry ? "would_replay" : "replayed": replay.sent.values.reduce(0, +), "refused": replay.refused.values.reduce(0, +),
      "queues": counts(replay.sent, replay.topology.name), "reasons": counts(replay.refused),
      "dry_run": JSONOptional(isDry ? true : nil),
    ]
  }

  /// - Returns: letters per second.
  static func rate(_ text: String?) throws(CommandFailure) -> Double? {
    guard let text else { return nil }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let units: [Substring: Double] = ["s": 1, "m": 60, "h": 3_600]
    guard let count = Int(parts[0]), (1...1_000_000).contains(count), parts.count <= 2,
      let unit = parts.count == 1 ? 1 : units[parts[1]]
    else { throw CommandFailure(.usage, "--rate must be letters a second, minute or hour: 100/s, 600/m, 1000/h") }
    return Double(count) / unit
  }
}
