import DeviceRegistry
import PushCore

enum DevicesCommand: Command {
  static let name = "devices"
  static let summary = "import, export, list, count, show, register and unregister devices in the registry"
  static let help = """
    Usage: pushfleet devices import --config FILE [--app APP] [--format csv|ndjson] [--dry-run] [--rejects FILE] [--json] FILE...
           pushfleet devices export --config FILE [--app APP] [--format csv|ndjson] [--times] [--json]
           pushfleet devices count --config FILE [--app APP] [--json]
           pushfleet devices list --config FILE [--app APP] --state gone|suspect|stale [--since TIME] [--json]
           pushfleet devices show --config FILE [--app APP] (--token T | --registration R | --installation I | --user U) [--json]
           pushfleet devices register --config FILE [--app APP] --platform apns|fcm --token T [OPTIONS] [--json]
           pushfleet devices unregister --config FILE [--app APP] (--token T | --registration R | --installation I) [--json]

    import reads CSV, with a header line of the names of register's fields (app, platform, token, installation, environment, sender,
    user, name, locale, time_zone, app_version, topics with | between them, kind, activity, registered_at), and NDJSON, one
    change of the registry on a line, such as {"platform":"apns","token":"…","topics":["news"]}; - is standard input. A
    row that is refused is reported with its file and line and costs only itself (exit status 65). A device counts as
    registered when it is imported, unless registered_at says since when the token is known: then a token that died later is
    found out, and a device that is gone since then stays gone. Without it, importing a file again brings gone devices back.

    export writes what import reads; gone devices are left out. show finds gone ones as well, and says since when. list prints those
    that are in a state: gone (a provider said so, or unregistered), suspect (refused in a way that a wrong setting can cause) or
    stale (not registered for longer than registryStaleAfter).

      --config FILE     the configuration (or PUSHFLEET_CONFIG), which names the registry
      --app APP         the application; may be left out when one is configured. For import, what rows without an app belong
                        to; export writes all applications' devices without it
      --format F        csv or ndjson. import finds it out by itself, export writes ndjson without it
      --dry-run         of import: read the files and say what is wrong with them; nothing is stored. What only the registry knows to
                        refuse, such as one topic too many, is not found
      --rejects FILE    of import: write the rows that were refused to FILE, to be corrected and imported. Each has its reason in a
                        first column or key `reason`, which import ignores
      --since TIME      of list: only those that came into the state since then: 15m, 2h, 7d ago, or 2026-11-20T21:22:00Z
      --times           export registered_at as well
      --json            print JSON, one object on a line; export does so without it

    Of register: --installation I, --environment production|sandbox, --sender S, --user U, --name N, --locale L,
    --time-zone Z, --app-version V, --topics NAME,NAME, --kind alert|voip|push_to_start|live_activity|…,
    --activity A. It prints the registration, to which requests can be sent.

    Example: pushfleet devices import --config pushfleet.json5 --app com.example.app devices.csv
    """

  static func run(_ arguments: inout [String]) throws {
    switch try Subcommand.take(&arguments, of: ["import", "export", "list", "count", "show", "register", "unregister"]) {
    case "import": try DevicesImport.run(arguments)
    case "export": try DevicesExport.run(arguments)
    case "list": try DevicesList.run(arguments)
    case "count": try DevicesCount.run(arguments)
    case "show": try show(arguments)
    case "register": try register(arguments)
    default: try unregister(arguments)
    }
  }

  /// Options of register and the fields they set.
  private static let fields = [
    ("platform", "platform"), ("token", "token"), ("installation", "installation"), ("environment", "environment"),
    ("sender", "sender"), ("user", "user"), ("name", "name"), ("locale", "locale"), ("time-zone", "time_zone"),
    ("app-version", "app_version"), ("kind", "kind"), ("activity", "activity"),
  ]

  private static func register(_ arguments: [String]) throws {
    let options = try Options(arguments, values: Set(fields.map(\.0) + ["topics", "config", "app"]), flags: ["json"])
    try options.refuseOperands()
    let session = try RegistrySession(options, isReading: false)
    var change = ChangeText("register", app: try session.app(options))
    for (option, field) in fields { change.set(field, options[option]) }
    if let topics = options["topics"] {
      change.set("topics", topics.split { $0 == "," || $0 == "|" }.map(String.init))
    }
    if let id = try session.apply(change, options).registration, !options.has("json") { Terminal.print(id) }
  }

  private static func unregister(_ arguments: [String]) throws {
    let options = try Options(arguments, values: ["token", "registration", "installation", "config", "app"], flags: ["json"])
    try options.refuseOperands()
    let (session, app, records) = try named(options, ["token", "registration", "installation"])
    let registered = records.filter { $0.state != .gone }
    for record in registered {
      var change = ChangeText("unregister", app: app)
      change.set("registration", String(decoding: record.registration, as: UTF8.self))
      _ = try session.apply(change, options)
    }
    if !options.has("json") {
      Terminal.complain("\(registered.count) unregistered\(registered.isEmpty ? ": gone already" : "")")
    }
  }

  /// The devices that one of the options names.
  /// - Throws: status 65 where there are none.
  private static func named(_ options: Options, _ names: [String]) throws -> (RegistrySession, app: [UInt8], [DeviceRecord]) {
    let given = names.compactMap { name in options[name].map { (name, $0) } }
    guard given.count == 1, let (kind, text) = given.first else {
      throw CommandFailure(.usage, "name a device by one of \(names.map { "--" + $0 }.joined(separator: ", "))")
    }
    let session = try RegistrySession(options, isReading: true)
    let app = try session.app(options)
    let records = try records(kind, Array(text.utf8), app, session.store)
    guard !records.isEmpty else {
      throw CommandFailure(.badInput, "--\(kind): no such device of \(String(decoding: app, as: UTF8.self)) is registered")
    }
    return (session, app, records)
  }

  private static func show(_ arguments: [String]) throws {
    let options = try Options(
      arguments, values: ["token", "registration", "installation", "user", "config", "app"], flags: ["json"])
    try options.refuseOperands()
    let (_, _, records) = try named(options, ["token", "registration", "installation", "user"])
    for (index, record) in records.enumerated() {
      if options.has("json") {
        Terminal.print(record.json)
      } else {
        Terminal.print((index > 0 ? "\n" : "") + record.text)
      }
    }
  }

  static func records(
    _ kind: String, _ text: [UInt8], _ app: [UInt8], _ store: any DeviceStore
  ) throws -> [DeviceRecord] {
    switch kind {
    case "installation": return try store.device(.installation(text), app: app)
    case "user": return try store.devices(ofUser: text, app: app, limit: 10_000)
    default:
      switch Target.classify(text) {
      case .success(.registration): return try store.device(.registration(text), app: app)
      // What it looks like doesn't say whose it is, unless it comes with its provider.
      case .success(.apns(let token)) where kind == "token", .success(.fcm(let token)) where kind == "token":
        let isPlain = token == text
        return try Platform.allCases.flatMap { platform in
          isPlain || text.starts(with: (platform == .apns ? "apns:" : "fcm:").utf8)
            ? try store.device(.token(platform, token), app: app) : []
        }
      default: throw CommandFailure(.usage, "--\(kind): not \(kind == "token" ? "a token" : "an issued registration")")
      }
    }
  }
}
