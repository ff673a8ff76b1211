import Foundation
import PushCore
import Worker

enum ExplainCommand: Command {
  static let name = "explain"
  static let summary = "show what a request becomes on an iPhone and on an Android phone, and what is lost"
  static let help = """
    Usage: pushfleet explain FILE [--target TARGET] [--config FILE] [--app APP] [--at TIME] [--json]

    Prints what a worker would send for the request in FILE (- reads standard input): headers, payload, bytes used of the limit,
    and a loss report: what was converted, cut, emulated or dropped, and by which rule. Neither a broker nor credentials are
    needed, and nothing is sent. A refused request is shown with its error code, reason and place (exit status 65).

      --target TARGET  explain the request as sent there: apns:… shows the iPhone only, fcm:… and fid:… the Android phone only;
                       without it, both
      --config FILE    the configuration (or PUSHFLEET_CONFIG), to take the app's APNs topic from
      --app APP        the application; may be left out when one is configured. Without a configuration, its id is the topic
      --at TIME        when it is published and sent, RFC 3339 in UTC (default: now)
      --json           one JSON object per platform, on a line of its own

    Example: pushfleet explain request.json --app com.example.app
    """

  static func run(_ arguments: inout [String]) throws {
    let options = try Options(arguments, values: ["target", "config", "app", "at"], flags: ["json"])
    guard let file = options.operands.first else { throw CommandFailure(.usage, "name a file with a request, or -") }
    guard options.operands.count == 1 else {
      throw CommandFailure(
        .usage, "unexpected argument \(Shown.value(options.operands[1])): one request at a time is explained")
    }
    let question = ExplainQuestion(
      body: try read(file), target: options["target"].map { Array($0.utf8) }, app: try ExplainedApp(options),
      now: try moment(options["at"]))
    if let target = question.target, case .failure(let rejection) = Target.classify(target) {
      throw CommandFailure(.usage, "--target: \(rejection.reason)")
    }
    let explanation = question.answer()
    if options.has("json") {
      for line in explanation.jsonLines { Terminal.print(line) }
    } else {
      Terminal.print(explanation.text(withBar: Terminal.isOutputInteractive))
    }
    if let code = explanation.refusal {
      throw CommandFailure(.badInput, "\(file == "-" ? "the request" : Shown.path(file)) is refused: \(code.rawValue)")
    }
  }

  /// One byte more than a request may have is enough to refuse it.
  private static func read(_ file: String) throws(CommandFailure) -> [UInt8] {
    let handle = file == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: file)
    let most = RequestLimits().json.bytes + 1
    var body: [UInt8] = []
    do {
      guard let handle else { throw CocoaError(.fileNoSuchFile) }
      while body.count < most, let chunk = try handle.read(upToCount: most - body.count), !chunk.isEmpty { body += chunk }
    } catch {
      throw CommandFailure(.badInput, "\(Shown.path(file)) cannot be read")
    }
    return body
  }

  /// Unix milliseconds.
  private static func moment(_ text: String?) throws(CommandFailure) -> Int64 {
    guard let text else { return Int64(Date().timeIntervalSince1970 * 1000) }
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
  /// The bundle ID; nil: unknown, and shown as a placeholder.
  var topic: String?
  var hasAPNs = true
  var hasFCM = true
  /// What `restricted_package_name` may say; nil: unknown.
  var packages: [String]?

  init(topic: String?) { self.topic = topic }

  init(_ options: Options) throws {
    let isConfigured = options["config"] != nil || ProcessInfo.processInfo.environment["PUSHFLEET_CONFIG"] != nil
    guard isConfigured else {
      topic = options["app"]
      if let topic, !APNsSettings(topic: topic).isUsable {
        throw CommandFailure(.usage, "--app: \(Shown.value(topic)) is not a bundle ID")
      }
      return
    }
    let apps = try options.configuration().apps
    guard options["app"] != nil || apps.count == 1, let app = apps.first(where: { options["app"] ?? $0.id == $0.id }) else {
      throw CommandFailure(.usage, "--app must name one of \(apps.map(\.id).joined(separator: ", "))")
    }
    topic = app.credentials.apns.first?.topic ?? app.id
    hasAPNs = !app.credentials.apns.isEmpty
    hasFCM = app.credentials.fcm != nil
    packages = app.packages
  }
}
