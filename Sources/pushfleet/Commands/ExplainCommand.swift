import Delivery
import PushCore
import Settings

enum ExplainCommand: Command {
  static let page = CommandPage(
    "explain", "show what a worker sends to each provider for a request, and what is lost",
    forms: [
      .form(
        "FILE", ["--target"], ["--config"], ["--app"], ["--sender"], ["--environment"], ["--message-id"], ["--age"], ["--at"],
        ["--json"])
    ],
    """
    Prints what a worker with the configuration would send for the request in FILE (- is standard input): headers, payload, used
    share of the size limit, and a loss report: what was converted, cut, emulated or dropped, and by which rule. It needs
    neither a broker nor credentials, and sends nothing. Of a refused request it prints error, reason and place (exit status 65).
    """,
    [
      .option(
        "target", "TARGET",
        "explain the request as sent to this target: apns:… shows only the iPhone, fcm:… and fid:… only the Android "
          + "phone, webpush:… only the browser; without it, `to` decides likewise, or both phones are shown, and the browser if web push is configured"
      ),
      .config(": the source of limits, defaults, topics and packages"),
      .option(
        "app", "APP",
        "the application; may be left out when one is configured, or when the request names its package. Without "
          + "a configuration, it is used as the topic"),
      .option("sender", "SENDER", "the application's sender, as in the header x-push-sender"),
      .option(
        "environment", "E", in: "production|sandbox",
        "the APNs environment of the tokens, as in the header x-push-environment"),
      .option("message-id", "ID", "the message id; with an APNs token as the target, it determines the apns-id"),
      .option("age", "SECONDS", "how long ago the request was published: the time it spent in queues (default: 0)"),
      .option("at", "TIME", "when the request is sent, RFC 3339 in UTC (default: now)"),
      .json("one JSON object per platform, each on its own line"),
    ],
    example: "pushfleet explain request.json --app com.example.app")

  static func run(_ options: Options) throws {
    guard let file = options.operands.first else { throw CommandFailure(.usage, "name a file with a request, or -") }
    guard options.operands.count == 1 else {
      throw CommandFailure(
        .usage, "unexpected argument \(SafeText.value(options.operands[1])): explain takes one request at a time")
    }
    let configuration = options.configurationFile == nil ? nil : try options.configuration()
    let most = (configuration?.limits.json ?? RequestLimits().json).bytes
    // One byte more than the limit is enough to refuse the request.
    guard let body = try InputFile(file).readAll(atMost: most + 1, unless: Interruption()) else {
      throw CommandFailure(.interrupted, "interrupted: the request has not ended")
    }
    let now = try moment(options["at"])
    let age = try options.integer("age", in: 0...1_000_000_000).map { Int64($0) * 1000 }
    try checkApplication(options, configuration, body)
    let to = (try? JSONDocument(body))?.string("to") ?? []
    let question = ExplainQuestion(
      body: body, target: options["target"].map { Array($0.utf8) },
      coversBothProviders: !["apns:", "fcm:", "fid:", "webpush:"].contains { to.starts(with: $0.utf8) },
      configuration: configuration, app: options["app"], sender: options["sender"],
      environment: try options.choice("environment", of: ["production", "sandbox"]), messageID: options["message-id"],
      published: age.map { now - $0 }, now: now)
    if let target = question.target, case .failure(let rejection) = Target.classify(target) {
      throw CommandFailure(.usage, "--target: \(rejection.reason)")
    }
    let explanation = question.answer()
    options.print(
      explanation.jsonLines,
      text: explanation.text(
        withBar: Terminal.isOutputInteractive, width: Terminal.width, hasColour: Terminal.hasColour))
    if let code = explanation.refusal {
      throw CommandFailure(.badInput, "\(file == "-" ? "the request" : SafeText.path(file)) is refused: \(code.rawValue)")
    }
  }

  private static func checkApplication(_ options: Options, _ configuration: Configuration?, _ body: [UInt8]) throws {
    if let configuration {
      let package = ExplainQuestion.package(in: body, configuration.limits.json)
      guard try configuration.application(options) != nil || package != nil else { throw configuration.severalApplications }
    } else if let topic = options["app"], !APNsSettings(topic: topic).isUsable {
      throw CommandFailure(.usage, "--app: \(SafeText.value(topic)) is not a bundle ID")
    }
  }

  private static func moment(_ text: String?) throws(CommandFailure) -> Int64 {
    guard let text else { return RegistrySession.now }
    if let time = Timestamp.milliseconds(of: Array(text.utf8)) { return time }
    throw CommandFailure(.usage, "--at must be a time such as 2026-11-20T21:22:00Z")
  }
}
