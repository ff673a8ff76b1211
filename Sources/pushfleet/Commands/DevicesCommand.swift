import Broker
import DeviceRegistry
import PushCore

enum DevicesCommand: Command {
  static let page = CommandPage(
    "devices", "import, export, list, count, show, register and unregister devices; forget users",
    forms: [
      .action("import", "--config", ["--app"], ["--format"], ["--dry-run"], ["--rejects"], ["--json"], "FILE..."),
      .action("export", "--config", ["--app"], ["--format"], ["--times"], ["--json"]),
      .action("count", "--config", ["--app"], ["--json"]),
      .action("list", "--config", ["--app"], "--state", ["--since"], ["--json"]),
      .action("show", "--config", ["--app"], .either(["--token", "--registration", "--installation", "--user"]), ["--json"]),
      .action(
        "register", "--config", ["--app"], "--platform", .either(["--token", "--subscription"]), registering, ["--json"]),
      .action("unregister", "--config", ["--app"], .either(["--token", "--registration", "--installation"]), ["--json"]),
      .action("forget", "--config", ["--app"], "--user", ["--reason"], ["--yes"], ["--json"]),
    ],
    """
    import reads CSV and NDJSON; - is standard input. A CSV file begins with a header line that names register's fields: app,
    platform, token, installation, environment, sender, user, name, locale, time_zone, app_version, topics (separated by |),
    kind, activity, registered_at, and for web push endpoint, p256dh, auth, application_server_key. Each NDJSON line is one registry change, such as
    {"platform":"apns","token":"…","topics":["news"]}. A refused row is reported with its file and line; the others are imported
    (exit status 65). registered_at says since when the token is known, so that a later death of the token is detected and a
    device that is gone since then stays gone. Without it, it is the time of the import, which brings gone devices back.

    export writes what import reads, without gone devices. show also finds gone devices and says since when. list prints the
    devices in a state: gone (a provider said so, or unregistered), suspect (refused in a way that a wrong setting can cause)
    or stale (not registered for longer than registryStaleAfter).

    forget deletes a user for good: the devices with their tokens, topics and badges, the secrets of their installations, and the
    memberships of groups. The audit says how many devices, not who. The command doesn't reach messages in queues, dead letters, results,
    the trace, and campaigns to the user: they last as long as is configured.
    """,
    [
      .config(", which names the registry"),
      .option(
        "app", "APP",
        "the application; may be left out when one is configured. For import, the application of rows that name "
          + "none; without it, export writes the devices of all applications"),
      .option("format", "F", in: "csv|ndjson", "csv or ndjson; without it, import detects the format and export writes ndjson"),
      .flag(
        "dry-run",
        "of import: only report what is wrong with the files; nothing is stored. Errors that only the registry "
          + "detects, such as one topic too many, are not found"),
      .option(
        "rejects", "FILE",
        "of import: write refused rows to FILE, to be corrected and imported again. Each has its "
          + "reason in a first column or key `reason`, which import ignores"),
      .option(
        "since", "TIME", "of list: only devices in the state since then: 15m, 2h or 7d ago, or 2026-11-20T21:22:00Z"),
      .flag("times", "of export: write registered_at, too"), .json("JSON, one object per line; export writes it anyway"),
      .option("state", "gone|suspect|stale"), .option("token", "T"), .option("registration", "R"),
      .option("installation", "I"), .option("user", "U"), .option("platform", "apns|fcm|webpush"),
      .option("subscription", "OBJECT", "of register: a browser's PushSubscription as JSON, for webpush instead of --token"),
      .option(
        "application-server-key", "KEY",
        "of register: the public VAPID key of the subscription, if it isn't the application's first; or its id of 16 hexadecimal digits"
      ),
      .option("environment", "production|sandbox"), .option("sender", "S"), .option("name", "N"),
      .option("locale", "L"), .option("time-zone", "Z"), .option("app-version", "V"), .option("topics", "NAME,NAME"),
      .option("kind", "alert|voip|push_to_start|live_activity"), .option("activity", "A"),
      RegistrySession.reasonOption, .flag("yes", "of forget: don't ask; needed without a terminal"),
    ],
    """
    Options of register: --installation I, --environment production|sandbox, --sender S, --user U, --name N, --locale L,
    --time-zone Z, --app-version V, --topics NAME,NAME, --kind alert|voip|push_to_start|live_activity|…,
    --activity A, --application-server-key KEY. register prints the registration, to which requests can be sent.
    """,
    example: "pushfleet devices import --config pushfleet.json5 --app com.example.app devices.csv")

  private static let registering = UsageForm.Item.group(
    "OPTIONS",
    [
      "--installation", "--environment", "--sender", "--user", "--name", "--locale", "--time-zone", "--app-version", "--topics",
      "--kind", "--activity", "--application-server-key",
    ])

  static func run(_ options: Options) throws {
    switch options.action {
    case "import": try DevicesImport.run(options)
    case "export": try export(options)
    case "list": try list(options)
    case "count": try count(options)
    case "show": try show(options)
    case "register": try register(options)
    case "forget": try forget(options)
    default: try unregister(options)
    }
  }

  // MARK: many devices

  private static func export(_ options: Options) throws {
    let format = try options.choice("format", of: BulkFormat.allCases.map(\.rawValue)).flatMap(BulkFormat.init(rawValue:))
    if options.asJSON, format == .csv { throw CommandFailure(.usage, "--json and --format csv exclude each other") }
    let session = try RegistrySession(options, store: .bulk)
    let app = try session.configuration.givenApp(options)
    let export = BulkExport(from: session.store, format: format ?? .ndjson, app: app, withTimes: options.has("times"))
    let interruption = try Interruption()
    while !interruption.hasCome, let bytes = try export.next() { Terminal.write(bytes) }
    guard !interruption.hasCome else {
      throw CommandFailure(
        .interrupted,
        "interrupted: \(export.exported) exported; the output ends with a whole line, export again for the rest")
    }
    Terminal.notice("\(export.exported) exported")
  }

  private static func list(_ options: Options) throws {
    let states: [DeviceState] = [.gone, .suspect, .stale]
    _ = try options.required("state", states.map(\.word).joined(separator: ", "))
    let word = try options.choice("state", of: states.map(\.word))
    guard let word, let state = states.first(where: { $0.word == word }) else { return }
    let now = RegistrySession.now
    let since = try options["since"].map { text throws(CommandFailure) in try LetterFilter.time(text, now: now) } ?? 0
    let session = try RegistrySession(options)
    let app = try session.configuration.app(options)
    try options.printPortions(
      [
        (.text("SINCE                   ", least: 24), { $0.markedAt.map(Figures.moment) ?? "-" }),
        (.text("REASON", least: 12, rank: 2), { $0.reason.map { String(printing: $0) } ?? "-" }),
        (.name("REGISTRATION", least: 12, rank: 1), { String(printing: $0.registration) }),
        (.text("KIND", least: 5, rank: 3), { ($0.device.kind ?? .alert).name }),
        (.name("TOKEN", least: 16), { $0.device.shownToken }),
      ], json: \.json, none: "no devices are \(word)\(options["since"] == nil ? "" : " since then")"
    ) { last, limit in
      try session.store.devices(app: app, in: state, since: since, after: last?.id ?? 0, limit: limit)
    }
  }

  private static func count(_ options: Options) throws {
    let session = try RegistrySession(options)
    let app = try session.configuration.givenApp(options)
    let counts = try session.store.deviceCounts(app: app)
    let table = TextTable(
      [
        (.figure("DEVICES"), { Figures.count($0.count) }), (.text("STATE", least: 7), { $0.state.word }),
        (.text("KIND", least: 13, rank: 1), { $0.kind.name }), (.text("PLATFORM", least: 8, rank: 2), { $0.platform.word }),
        (.name("APP", least: 12, rank: 3), { String(printing: $0.app) }),
      ], of: counts)
    options.print(counts.map(\.json.line), text: counts.isEmpty ? "no devices" : table.text(width: Terminal.width))
  }

  // MARK: one device or user

  private static func register(_ options: Options) throws {
    let session = try RegistrySession(options, isReading: false)
    let topics = options["topics"].map { $0.split { $0 == "," || $0 == "|" }.map { Array($0.utf8) } }
    let app = try session.configuration.app(options)
    let subscription = options["subscription"].map { Array($0.utf8) }
    if let subscription, (try? JSONDocument(subscription)) == nil { throw CommandFailure(.badInput, "--subscription: no JSON") }
    let fields = (["platform", "token"] + registering.options).filter { $0 != "topics" }
    let change =
      ["op": "register", "app": app]
      + JSONObject(fields.map { ($0.replacing("-", with: "_"), JSONOptional(options[$0])) })
      + ["topics": JSONOptional(topics), "subscription": JSONOptional(subscription.map(JSONRaw.init))]
    if let id = try session.apply(change, options).registration, !options.asJSON { Terminal.print(id) }
  }

  private static func unregister(_ options: Options) throws {
    let (session, app, records) = try named(options, ["token", "registration", "installation"])
    let registered = records.filter { $0.state != .gone }
    for record in registered {
      _ = try session.apply(["op": "unregister", "app": app, "registration": record.registration], options)
    }
    if !options.asJSON {
      Terminal.notice("\(registered.count) unregistered\(registered.isEmpty ? ": gone already" : "")")
    }
  }

  private static func forget(_ options: Options) throws {
    guard let user = options["user"] else { throw CommandFailure(.usage, "name a user by --user") }
    let session = try RegistrySession(options)
    let app = try session.configuration.app(options)
    let isSure = options.has("yes")
    guard isSure || Terminal.canAsk else { throw CommandFailure(.usage, "forget deletes a user for good: use --yes") }
    guard isSure || Terminal.confirms("Delete the user \(String(printing: Array(user.utf8))) and the devices for good?") else {
      throw CommandFailure(.interrupted, "nothing was deleted")
    }
    let event = try session.perform(.forget(user: Array(user.utf8), app: app))
    options.print(event.json, text: "deleted the user and \(event.change)")
  }

  /// The devices that one of the options names.
  /// - Throws: status 65 if there are none.
  private static func named(_ options: Options, _ names: [String]) throws -> (RegistrySession, app: [UInt8], [DeviceRecord]) {
    let given = names.compactMap { name in options[name].map { (name, $0) } }
    guard given.count == 1, let (kind, text) = given.first else {
      throw CommandFailure(.usage, "name a device by one of \(names.map { "--" + $0 }.joined(separator: ", "))")
    }
    let session = try RegistrySession(options)
    let app = try session.configuration.app(options)
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
    _ kind: String, _ text: [UInt8], _ app: [UInt8], _ store: DeviceStore
  ) throws -> [DeviceRecord] {
    switch kind {
    case "installation": return try store.device(.installation(text), app: app)
    case "user": return try store.devices(ofUser: text, app: app, limit: 10_000)
    default:
      switch DeviceReference(text: text) {
      case .registration(let id): return try store.device(.registration(id), app: app)
      // A plain token can belong to APNs or to FCM; a prefix names the provider.
      case .token(let platform, let token) where kind == "token":
        let platforms = token == text && platform != .webpush ? [.apns, .fcm] : [platform]
        return try platforms.flatMap { try store.device(.token($0, token), app: app) }
      default: throw CommandFailure(.usage, "--\(kind): not \(kind == "token" ? "a token" : "an issued registration")")
      }
    }
  }
}
