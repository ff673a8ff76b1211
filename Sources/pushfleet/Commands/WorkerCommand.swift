import Foundation
import PushCore
import Reactor
import Worker

enum WorkerCommand: Command {
  static let page = CommandPage(
    "worker", "consume requests, deliver them, publish the outcomes",
    forms: [.form("--config", ["--until-empty"], ["--json"])],
    """
    Consumes the send, fan-out and retry queues and delivers until SIGTERM or SIGINT. Then it reads no more messages, finishes
    what is in flight and exits with status 0. A second signal ends it at once; unfinished messages return to the broker. On
    SIGHUP, or when the configuration or a credential file changes, it loads applications and credentials; no push fails.
    """,
    [
      .config(), .flag("until-empty", "exit 0 once the send, fan-out and retry queues are empty and everything is settled"),
      .json("print the final figures as one JSON object on standard output"),
    ],
    example: "pushfleet worker --config pushfleet.json5 --until-empty")

  static func run(_ options: Options) throws {
    Signals.block([Signals.hangUp])
    let configuration = try options.configuration()
    let fleet = try Fleet(
      configuration, version: Pushfleet.version, file: options.configurationFile, isUntilEmpty: options.has("until-empty"),
      reload: options.configuration)
    let (end, counters) = try fleet.run()
    switch end {
    case .done:
      // Log lines come first, so that the figures are last where both streams share a destination.
      StandardError.flush()
      guard options.asJSON else { return }
      let errors = counters.failuresByCode.map { ($0.code, $0.count as any JSONMember) }
      Terminal.print(JSONObject(counters.summary.map { ($0, $1) }) + ["errors": JSONObject(errors)])
    // The log has the reason.
    case .misconfigured: exit(ExitStatus.configuration.rawValue)
    case .unreachable: exit(ExitStatus.unavailable.rawValue)
    }
  }
}
