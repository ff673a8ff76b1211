import Foundation
import PushCore
import Reactor
import Settings

enum ExplainCommand: Command {
  static let page = CommandPage(
    "explain", "show what a request becomes on an iPhone and on an Android phone, and what is lost",
    forms: [
      .form(
        "FILE", ["--target"], ["--config"], ["--app"], ["--sender"], ["--environment"], ["--message-id"], ["--age"], ["--at"],
        ["--json"])
    ],
    """
    Prints what a worker with the configuration would send for the request in FILE (- reads standard input): headers, payload, bytes used of the limit,
    and a loss report: what was converted, cut, emulated or dropped, and by which rule. Neither a broker nor credentials are
    needed, and nothing is sent. A refused request is shown with its error code, reason and place (exit status 65).
    """,
    [
      .option(
        "target", "TARGET",
        "explain the request as sent there: apns:… shows the iPhone only, fcm:… and fid:… the Android "
          + "phone only; without it, both"),
      .config(": limits, defaults, topics and packages are taken from there"),
      .option(
        "app", "APP",
        "the application; may be left out when one is configured, or when the request names its package. Without "
          + "a configuration, its id is the topic"),
      .option("sender", "SENDER", "the application's sender, as the header x-push-sender names it"),
      .option(
        "environment", "E", in: "production|sandbox",
        "the APNs of the request's tokens, as the header x-push-environment names it"),
      .option("message-id", "ID", "its message id: with the token of an iPhone as the target it gives the apns-id"),
      .option("age", "SECONDS", "how long ago it was published: what a worker sends after so long in queues (default: 0)"),
      .option("at", "TIME", "when it is sent, RFC 3339 in UTC (default: now)"),
      .json("one JSON object per platform, on a line of its own"),
    ],
    example: "pushfleet explain request.json --app com.example.app")

  static func run(_ options: Options) throws {
    guard let file = options.operands.first else { throw CommandFailure(.usage, "name a file with a request, or -") }
    guard options.operands.count == 1 else {
      throw CommandFailure(
        .usage, "unexpected argument \(Shown.value(options.operands[1])): one request at a time is explained")
    }
    let configuration = options.configurationFile == nil ? nil : try options.configuration()
    let body = try read(file, configuration?.limits.json ?? RequestLimits().json)
    let now = try moment(options["at"])
    let age = try options.integer("age", in: 0...1_000_000_000).map { Int64($0) * 1000 }
    let question = ExplainQuestion(
      body: body, target: options["target"].map { Array($0.utf8) }, app: try ExplainedApp(options, configuration, body),
      sender: options["sender"],
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
      throw CommandFailure(.badInput, "\(file == "-" ? "the request" : Shown.path(file)) is refused: \(code.rawValue)")
    }
  }

  /// One byte more than a request may have is enough to refuse it.
  private static func read(_ file: String, _ limits: JSONLimits) throws -> [UInt8] {
    let unreadable = CommandFailure(.badInput, "\(Shown.path(file)) cannot be read\(Shown.reason(file))")
    guard let handle = file == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: file) else { throw unreadable }
    let interruption = try Interruption()
    let body: [UInt8]?
    do throws(SystemError) {
      body = try interruption.readAll(InputDescriptor(handle.fileDescriptor), atMost: limits.bytes + 1)
    } catch { throw unreadable }
    guard let body else { throw CommandFailure(.interrupted, "interrupted: the request has not ended") }
    return body
  }

  /// Unix milliseconds.
  private static func moment(_ text: String?) throws(CommandFailure) -> Int64 {
    guard let text else { return RegistrySession.now }
    for fraction in [false, true] {
      if let date = try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: fraction)) {
        return Int64((date.timeIntervalSince1970 * 1000).rounded())
      }
    }
    throw CommandFailure(.usage, "--at must be a time such as 2026-11-20T21:22:00Z")
  }
}

/// What is known of the application that a request is explained for.
struct ExplainedApp {
  /// The bundle ID where there is no configuration; nil: unknown, and shown as a placeholder.
  var topic: String?
  var configuration: Configuration?
  /// As `app_id` names it; nil where the request or the configuration says which it is.
  var id: String?

  /// Of a request's JSON.
  var limits: JSONLimits { configuration?.limits.json ?? RequestLimits().json }

  init(topic: String?) { self.topic = topic }

  init(_ configuration: Configuration, id: String? = nil) {
    self.configuration = configuration
    self.id = id
  }

  /// - Parameter configuration: nil where none is named.
  init(_ options: Options, _ configuration: Configuration?, _ body: [UInt8]) throws {
    guard let configuration else {
      topic = options["app"]
      if let topic, !APNsSettings(topic: topic).isUsable {
        throw CommandFailure(.usage, "--app: \(Shown.value(topic)) is not a bundle ID")
      }
      return
    }
    guard try configuration.application(options) != nil || Self.package(in: body, configuration.limits.json) != nil else {
      throw configuration.severalApplications
    }
    self.configuration = configuration
    id = options["app"]
  }

  /// What a request's `restricted_package_name` says.
  static func package(in body: [UInt8], _ json: JSONLimits) -> [UInt8]? {
    var limits = RequestLimits()
    limits.json = json
    limits.ignoresUnknownNames = true
    return try? SendRequest.parse(body, limits: limits).get().restrictedPackageName
  }
}
