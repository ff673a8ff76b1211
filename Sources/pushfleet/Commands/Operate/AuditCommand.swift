import DeviceRegistry
import PushCore

enum AuditCommand: Command {
  static let page = CommandPage(
    "audit", "list the operations of operators: who, when, what, why",
    forms: [.form("--config", ["--app"], ["--limit"], ["--json"])],
    """
    The registry keeps every operation for two years, whether it came from a command, the HTTP interface or the console. Workers
    also publish each one to PREFIX.events with the routing key audit.APP.
    """,
    [
      .config(", which names the registry"), .option("app", "APP", "only operations on this application"),
      .option("limit", "N", "at most N, the newest first (50)"), .json("one JSON object for each operation"),
    ],
    example: "pushfleet audit --config pushfleet.json5 --app com.example.app")

  static func run(_ options: Options) throws {
    let session = try RegistrySession(options, isReading: true)
    let limit = try options.integer("limit", in: 1...100_000) ?? 50
    let events = try session.store.auditEvents(of: session.givenApp(options), limit: limit)
    guard !options.asJSON, events.isEmpty else {
      return options.print(events.map(\.json), text: TextTable(events).text(width: Terminal.width))
    }
    Terminal.say("no operations")
  }
}

extension TextTable {
  init(_ events: [AuditEvent]) {
    self.init(
      [
        (.figure("WHEN"), { Figures.time($0.at) }), (.text("WHO", least: 6), { String(printing: $0.actor) }),
        (.text("WHERE", least: 8, rank: 4), { String(printing: $0.origin) }),
        (.text("WHAT", least: .max), { String(printing: $0.action) }),
        (.name("ON", least: 12, rank: 1), { String(printing: $0.subject) }),
        (.text("BEFORE", least: 10, rank: 3), { String(printing: $0.before) }),
        (.text("AFTER", least: 10, rank: 2), { String(printing: $0.after) }),
        (.text("WHY", least: 8), { $0.reason.map { String(printing: $0) } ?? "-" }),
      ], of: events)
  }
}
