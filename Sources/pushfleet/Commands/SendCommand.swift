import PushCore

enum SendCommand: Command {
  static let page = CommandPage(
    "send", "publish send requests, with confirms; wait for their outcomes",
    forms: [
      .form(
        "--config", ["--app"], ["--lane"], ["--check"], [.either(["--ids", "--wait"])], ["--timeout"], ["--json"], "FILE...")
    ],
    """
    Publishes the requests in each FILE: one JSON object, or one per line (NDJSON); - is standard input. The broker confirms
    every request before the command ends. A line that is not a JSON object is reported and not sent (exit status 65); the
    others are sent. "sent" means that the request is in the queue; --wait reports the outcome.
    """,
    [
      .config(),
      .option(
        "app", "APP",
        "the target application; may be left out when only one is configured, or when each request names it by "
          + "restricted_package_name"),
      .option("lane", "LANE", in: "high|normal", "high or normal (the default)"),
      .flag(
        "check",
        "first check whether a worker would refuse the content of a request; if so, say why and publish none (exit "
          + "status 65). Users, topics and devices are not looked up"),
      .flag("ids", "print each request's message id once it is confirmed"),
      .flag(
        "wait",
        "print the outcome of each request. The exit status is 65 if some devices, or all, were not reached, and 69 if an "
          + "outcome is missing. The outcome of a topic arrives after its last device"),
      .option("timeout", "S", "give up (exit status 69) after S seconds without progress (300; with --wait 60)"),
      .json("print JSON: with --ids or --wait one object per request, and one at the end"),
    ],
    example: #"echo '{"to": "/topics/news", "notification": {"body": "Goal!"}}' | pushfleet send --config pushfleet.json5 "#
      + "--check --wait -")

  static func run(_ options: Options) throws {
    let lane = try options.choice("lane", of: ["high", "normal"]) ?? "normal"
    guard !options.operands.isEmpty else { throw CommandFailure(.usage, "name at least one file of requests, or -") }
    guard !(options.has("ids") && options.has("wait")) else {
      throw CommandFailure(.usage, "--wait prints the ids, too: --ids and --wait exclude each other")
    }
    let timeout = try options.integer("timeout", in: 1...86_400) ?? (options.has("wait") ? 60 : 300)
    let configuration = try options.configuration()
    let named = try configuration.application(options)
    let app = named.map { String(decoding: $0, as: UTF8.self) }
    func files(_ input: [UInt8]?) throws -> RequestFiles {
      try RequestFiles(options.operands, limits: configuration.limits.json, namesApp: app == nil, input: input)
    }
    var input: [UInt8]?
    if options.has("check") {
      let interruption = try Interruption()
      let interrupted = CommandFailure(.interrupted, "interrupted: nothing was sent")
      if options.operands.contains("-") {
        guard let read = try InputFile.standardInput(unless: interruption) else { throw interrupted }
        input = read
      }
      let check = RequestCheck(configuration, app: app)
      guard let refused = try check.refused(in: files(input), unless: interruption) else { throw interrupted }
      if refused > 0 { throw CommandFailure(.badInput, "\(refused) of the requests would be refused: none is sent") }
    }
    let requests = try files(input)
    let report = SendReport(configuration, options, app: named)
    let client = try RequestSender(
      configuration, requests, app: options["app"], lane: lane, timeout: Double(timeout), report: report)
    defer { client.reportUnanswered() }
    try client.run()
    try report.end(refused: requests.refused, problem: requests.problem)
  }
}
