import Broker
import DeviceRegistry
import PushCore

enum LanesCommand: Command {
  static let page = CommandPage(
    "lanes", "pause and resume the queues of requests",
    forms: [
      .action("[list]", "--config", ["--json"]),
      .action("pause", "--config", ["--until"], ["--reason"], ["--json"], "LANE"),
      .action("resume", "--config", ["--reason"], ["--json"], "LANE"),
    ],
    """
    No worker consumes a paused lane; every worker follows within two seconds. Requests wait in its queue, those of all
    applications. Requests that workers already have in hand are still sent. To stop one application, see `pushfleet apps`.
    """,
    [
      .config(", which names the registry"),
      .option("until", "TIME", "resume then: in 90s, 15m, 2h, 7d, or at 2026-11-20T21:22:00Z"),
      OperatorSession.reasonOption,
      .operand("LANE", "send.high or send.normal; fanout.high or fanout.normal for the pages of broadcasts"),
      .json("one JSON object for each lane"),
    ],
    example: "pushfleet lanes pause fanout.normal --config pushfleet.json5 --until 30m")

  static func run(_ options: Options) throws {
    try OperatorSession(options).control(Topology.lanes, "LANE", options) { .lane($0) }
  }
}
