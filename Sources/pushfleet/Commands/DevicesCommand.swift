import DeviceRegistry
import PushCore

enum DevicesCommand: Command {
  static let page = CommandPage(
    "devices", "import, export, list, count, show, register and unregister devices in the registry",
    forms: [
      .action("import", "--config", ["--app"], ["--format"], ["--dry-run"], ["--rejects"], ["--json"], "FILE..."),
      .action("export", "--config", ["--app"], ["--format"], ["--times"], ["--json"]),
      .action("count", "--config", ["--app"], ["--json"]),
      .action("list", "--config", ["--app"], "--state", ["--since"], ["--json"]),
      .action("show", "--config", ["--app"], .either(["--token", "--registration", "--installation", "--user"]), ["--json"]),
      .action("register", "--config", ["--app"], "--platform", "--token", registering, ["--json"]),
      .action("unregister", "--config", ["--app"], .either(["--token", "--registration", "--installation"]), ["--json"]),
    ],
    """
    import reads CSV, with a header line of the names of register's fields (app, platform, token, installation, environment, sender,
    user, name, locale, time_zone, app_version, topics with | between them, kind, activity, registered_at), and NDJSON, one
    change of the registry on a line, such as {"platform":"apns","token":"…","topics":["news"]}; - is standard input. A
    row that is refused is reported with its file and line and costs only itself (exit status 65). A device counts as
    registered when it is imported, unless registered_at says since when the token is known: then a token that died later is
    found out, and a device that is gone since then stays gone. Without it, importing a file again brings gone devices back.

    export writes what import reads; gone devices are left out. show finds gone ones as well, and says since when. list prints those
    that are in a state: gone (a provider said so, or unregistered), suspect (refused in a way that a wrong setting can cause) or
    stale (not registered for longer than registryStaleAfter).
    """,
    [
      .config(", which names the registry"),
      .option(
        "app", "APP",
        "the application; may be left out when one is configured. For import, what rows without an app belong "
          + "to; export writes all applications' devices without it"),
      .option("format", "F", in: "csv|ndjson", "csv or ndjson. import finds it out by itself, export writes ndjson without it"),
      .flag(
        "dry-run",
        "of import: read the files and say what is wrong with them; nothing is stored. What only the registry knows "
          + "to refuse, such as one topic too many, is not found"),
      .option(
        "rejects", "FILE",
        "of import: write the rows that were refused to FILE, to be corrected and imported. Each has its "
          + "reason in a first column or key `reason`, which import ignores"),
      .option(
        "since", "TIME", "of list: only those that came into the state since then: 15m, 2h, 7d ago, or 2026-11-20T21:22:00Z"),
      .flag("times", "export registered_at as well"), .json("print JSON, one object on a line; export does so without it"),
      .option("state", "gone|suspect|stale"), .option("token", "T"), .option("registration", "R"),
      .option("installation", "I"), .option("user", "U"), .option("platform", "apns|fcm"),
      .option("environment", "production|sandbox"), .option("sender", "S"), .option("name", "N"),
      .option("locale", "L"), .option("time-zone", "Z"), .option("app-version", "V"), .option("topics", "NAME,NAME"),
      .option("kind", "alert|voip|push_to_start|live_activity"), .option("activity", "A"),
    ],
    """
    Of register: --installation I, --environment production|sandbox, --sender S, --user U, --name N, --locale L,
    --time-zone Z, --app-version V, --topics NAME,NAME, --kind alert|voip|push_to_start|live_activity|…,
    --activity A. It prints the registration, to which requests can be sent.
    """,
    example: "pushfleet devices import --config pushfleet.json5 --app com.example.app devices.csv")

  /// What register takes beside platform and token.
  private static let registering = UsageForm.Item.group(
    "OPTIONS",
    [
      "--installation", "--environment", "--sender", "--user", "--name", "--locale", "--time-zone", "--app-version", "--topics",
      "--kind", "--activity",
    ])

  static func run(_ options: Options) throws {
    switch options.action {
    case "import": try DevicesImport.run(options)
    case "export": try DevicesExport.run(options)
    case "list": try DevicesList.run(options)
    case "count": try DevicesCount.run(options)
    case "show": try show(options)
    case "register": try register(options)
    default: try unregister(options)
    }
  }

  private static func register(_ options: Options) throws {
    let session = try RegistrySession(options, isReading: false)
    let topics = options["topics"].map { $0.split { $0 == "," || $0 == "|" }.map { Array($0.utf8) } }
    let fields = (["platform", "token"] + registering.options).filter { $0 != "topics" }
    let change =
      ["op": "register", "app": try session.app(options)]
      + JSONObject(fields.map { ($0.replacing("-", with: "_"), JSONOptional(options[$0])) }) + ["topics": JSONOptional(topics)]
    if let id = try session.apply(change, options).registration, !options.asJSON { Terminal.print(id) }
  }

  private static func unregister(_ options: Options) throws {
    let (session, app, records) = try named(options, ["token", "registration", "installation"])
    let registered = records.filter { $0.state != .gone }
    for record in registered {
      _ = try session.apply(["op": "unregister", "app": app, "registration": record.registration], options)
    }
    if !options.asJSON {
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

  private static func show(_ options: Options) throws {
    let (_, _, records) = try named(options, ["token", "registration", "installation", "user"])
    for (index, record) in records.enumerated() {
      options.print(record.json, text: (index > 0 ? "\n" : "") + record.text)
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
