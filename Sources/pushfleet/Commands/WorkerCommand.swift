import Delivery
import Foundation
import PushCore
import Reactor
import Settings
import Worker

enum WorkerCommand: Command {
  static let page = CommandPage(
    "worker", "consume requests, deliver them, publish what came of them",
    forms: [.form("--config", ["--until-empty"], ["--json"])],
    """
    Consumes the send, fan-out and retry queues and delivers until SIGTERM or SIGINT; then it takes nothing more, lets what
    is in flight finish and exits 0. A second signal ends it at once; what is unfinished goes back to the broker. SIGHUP, and
    a change of the configuration or of a credential's file, takes over applications and credentials without failing a push.
    """,
    [
      .config(), .flag("until-empty", "exit 0 once the send, fan-out and retry queues are empty and everything is settled"),
      .json("print the final figures as one JSON object on standard output"),
    ],
    example: "pushfleet worker --config pushfleet.json5 --until-empty")

  static func run(_ options: Options) throws {
    let configuration = try options.configuration()
    let fleet = try Fleet(
      configuration, version: Pushfleet.version, file: options.configurationFile, isUntilEmpty: options.has("until-empty")
    ) { () throws(ConfigurationError) in try options.configuration() }
    let (end, counters) = try fleet.run()
    switch end {
    case .done:
      // Whoever reads both finds the figures last.
      StandardError.flush()
      if options.asJSON { report(counters) }
    // The log has said why.
    case .misconfigured: exit(ExitStatus.configuration.rawValue)
    case .unreachable: exit(ExitStatus.unavailable.rawValue)
    }
  }

  private static func report(_ counters: Counters) {
    let errors = counters.failuresByCode.map { ($0.code, $0.count as any JSONMember) }
    let figures: JSONObject = [
      "received": counters.received, "redelivered": counters.redelivered, "delivered": counters.delivered,
      "failed": counters.failures, "expired": counters.expired, "collapsed": counters.collapsed, "retries": counters.retries,
      "parked": counters.parked, "held": counters.putToHold, "unknown": counters.unknownOutcomes,
      "duplicates_suppressed": counters.duplicatesSuppressed, "feedback": counters.feedback,
      "dead_letters": counters.deadLetters, "results": counters.results, "errors": JSONObject(errors),
    ]
    Terminal.print(figures)
  }
}
