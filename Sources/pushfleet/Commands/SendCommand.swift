import AMQP
import Foundation
import PushCore
import Reactor

enum SendCommand: Command {
  static let name = "send"
  static let summary = "publish send requests, with confirms; wait for their outcomes"
  static let help = """
    Usage: pushfleet send --config FILE [--app APP] [--lane high|normal] [--check] [--ids | --wait] [--timeout S] [--json] FILE...

    Publishes each FILE's requests: one JSON object, or one per line (NDJSON); - reads standard input. Every request is
    confirmed by the broker before the command ends. What is no JSON object is reported with its line and not sent (exit
    status 65); the others are. Sent means that workers will deal with it; --wait says what became of it.

      --config FILE   the configuration (or PUSHFLEET_CONFIG)
      --app APP       the application sent to; may be left out when only one is configured, or each request says it by
                      restricted_package_name
      --lane LANE     high or normal (the default)
      --check         first see whether a worker would refuse any of them for what they say; if so, say why and publish none (exit
                      status 65). Users, topics and devices are not looked up
      --ids           print each request's message id once it is confirmed
      --wait          print what became of each request, and end with status 65 when a device, or all, were not reached, 69 when an outcome
                      didn't come; that of a topic comes when all of its devices have been sent to
      --timeout S     give up (exit status 69) after so many seconds without progress: 300, with --wait 60
      --json          print JSON: of --ids and --wait one object per request, and one when done

    Example: echo '{"to": "/topics/news", "notification": {"body": "Goal!"}}' | pushfleet send --config pushfleet.json5 --check --wait -
    """

  static func run(_ arguments: inout [String]) throws {
    let options = try Options(
      arguments, values: ["config", "app", "lane", "timeout"], flags: ["json", "check", "ids", "wait"])
    let lane = try options.choice("lane", of: ["high", "normal"]) ?? "normal"
    guard !options.operands.isEmpty else { throw CommandFailure(.usage, "name at least one file of requests, or -") }
    guard !(options.has("ids") && options.has("wait")) else {
      throw CommandFailure(.usage, "--wait prints the ids as well: --ids and --wait exclude each other")
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
        guard let read = try StandardInput.read(unless: interruption) else { throw interrupted }
        input = read
      }
      let check = RequestCheck(configuration, app: app)
      guard let refused = try check.refused(in: files(input), unless: interruption) else { throw interrupted }
      if refused > 0 { throw CommandFailure(.badInput, "\(refused) of the requests would be refused: none is sent") }
    }
    let requests = try files(input)
    let report = SendReport(
      configuration, app: named, asJSON: options.has("json"),
      prints: options.has("wait") ? .outcomes : options.has("ids") ? .ids : .nothing,
      unreachable: { user, app in DeviceHistory.unreachable(user: user, app: app, options) })
    let client = try RequestSender(
      configuration, requests, app: options["app"], lane: lane, timeout: Double(timeout), report: report)
    defer { client.reportUnanswered() }
    try client.run()
    try report.end(refused: requests.refused)
  }
}
