import Broker
import DeviceRegistry
import PushCore
import Settings

enum AppsCommand: Command {
  static let page = CommandPage(
    "apps", "pause, resume, drain and slow down applications",
    forms: RegistrySession.forms("APP", .action("rate", "--config", ["--reason"], ["--json"], "APP", "RATE")),
    """
    Every worker follows within two seconds. The state is in the registry, so it outlives restarts.

    pause lets an application's requests wait in its hold queue. No attempt is counted, and times to live continue. Pushes that
    are being sent still reach devices. Requests for now or never (time_to_live 0) become dead letters. Other applications are
    not affected. resume sends what waits.

    drain sends what waits and refuses new requests: they become dead letters, which can be replayed after resume.

    rate limits the pushes per second of the whole fleet; "none" removes the limit. Requests beyond it wait.

    discard deletes what waits in the hold queue of a paused application, for good.
    """,
    .list(
      RegistrySession.options + [
        .operand("APP", "the application's id"),
        .operand("RATE", "pushes per second of the fleet, such as 200/s, or none"),
        .json("one JSON object for each application"),
      ]),
    example: "pushfleet apps pause com.example.app --config pushfleet.json5 --until 2h --reason \"wrong text\"")

  static func run(_ options: Options) throws {
    let session = try RegistrySession(options)
    let operands = options.action == "rate" ? 2 : 1
    try session.control(session.configuration.apps.map(\.id), "an application", options, operands: operands, ControlSubject.app)
    { app in
      if options.action == "rate" { return .rate(app, try rate(options.operands.dropFirst().first)) }
      try HeldCommand.discard(options, session, app, .held(app.text))
      return nil
    }
  }

  /// The most pushes per second that can be a limit.
  private static let mostRate = 10_000_000

  static func rate(_ text: String?) throws(CommandFailure) -> Int64? {
    if text == "none" { return nil }
    let number = text.map { $0.hasSuffix("/s") ? String($0.dropLast(2)) : $0 }.flatMap { Int64($0) }
    guard let number, (1...Int64(mostRate)).contains(number) else {
      throw CommandFailure(.usage, "RATE must be pushes per second from 1/s to \(mostRate)/s, or none")
    }
    return number
  }

  static func show(_ controls: [Control], _ options: Options) throws {
    let now = RegistrySession.now
    options.print(
      controls.map { $0.namedJSON(at: now).line }, text: TextTable(controls, at: now).text(width: Terminal.width))
  }
}

extension TextTable {
  /// - Parameter now: Unix milliseconds.
  init(_ controls: [Control], at now: Int64) {
    func ifSet(_ control: Control, _ text: (Control) -> String?) -> String {
      control.mode(at: now) == .running ? "-" : text(control) ?? "-"
    }
    self.init(
      [
        (.name("NAME", least: 12), { String(printing: $0.subject.name) }),
        (.text("STATE", least: .max), { $0.mode(at: now).rawValue + ($0.sender == nil ? "" : " with its sender") }),
        (.figure("SINCE", rank: 3), { ifSet($0) { $0.since.map(Figures.time) } }),
        (.figure("UNTIL", rank: 2), { ifSet($0) { $0.until.map(Figures.time) } }),
        (.figure("RATE", rank: 4), { $0.rate.map { "\(Figures.count($0))/s" } ?? "-" }),
        (.text("BY", least: 6, rank: 5), { ifSet($0) { $0.actor.map { String(printing: $0) } } }),
        (.text("REASON", least: 12, rank: 1), { ifSet($0) { $0.reason.map { String(printing: $0) } } }),
      ], of: controls)
  }
}
