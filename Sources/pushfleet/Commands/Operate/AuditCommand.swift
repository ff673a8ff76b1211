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
    let session = try RegistrySession(options)
    let limit = try options.integer("limit", in: 1...100_000) ?? 50
    let events = try session.store.auditEvents(of: session.configuration.givenApp(options).map { [$0] }, limit: limit)
    guard options.asJSON || !events.isEmpty else { return Terminal.say("no operations") }
    options.print(events.map(\.json.line), text: TextTable(events).text(width: Terminal.width))
  }
}

extension AuditEvent {
  /// The state before and after, in few words.
  var change: String {
    let (old, new) = (Self.words(before), Self.words(after))
    return old.isEmpty || old == new ? new : "\(old) → \(new)"
  }

  private static func words(_ state: [UInt8]) -> String {
    guard let document = try? JSONDocument(state), document.kind(document.root) == .object else { return "" }
    func number(_ name: String) -> Int64? {
      document.value(name, of: document.root).flatMap { document.integer($0) }
    }
    func count(_ noun: String) -> String? {
      number(noun + "s").map { "\(Figures.count($0)) \(noun)\($0 == 1 ? "" : "s")" }
    }
    let words = [
      document.string("state").map { String(printing: $0) }, number("rate").map { "\(Figures.count($0))/s" },
      count("message"), count("device"),
    ]
    return words.compactMap(\.self).joined(separator: ", ")
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
        (.text("CHANGE", least: 8, rank: 2), \.change),
        (.text("WHY", least: 8), { $0.reason.map { String(printing: $0) } ?? "-" }),
      ], of: events)
  }
}
