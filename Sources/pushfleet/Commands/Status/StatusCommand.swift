import Foundation
import Reactor
import Settings

enum StatusCommand: Command {
  static let page = CommandPage(
    "status", "the fleet at a glance: workers, queues, campaigns",
    forms: [.form("--config", ["--pools"], ["--json"])],
    """
    Counts what is ready in each queue, asks the fleet's workers how they stand, on whatever hosts they run, and how long pushes of
    the last minute took, and lists the campaigns that aren't over. `pushfleet top` shows the same every second.

    Latencies are read off histograms: P50 and P99 are estimates between two of their bounds. `answers` is the provider's round trip,
    `from publishing` begins when the broker took the request, where RabbitMQ notes it (header timestamp_in_ms), else at the request's
    timestamp, whose whole seconds tell no more than "< 1 s"; it leaves out broadcasts.
    """,
    [
      .config(),
      .flag(
        "pools",
        "list credentials with their connections, those in trouble first; without it only those. Of many "
          + "applications: those in trouble, of the first thirty, and with a hold queue"),
      .json("one JSON object per queue, worker, campaign, and one of the fleet, by their kind"),
    ],
    example: "pushfleet status --config pushfleet.json5")

  static func run(_ options: Options) throws { try run(options, every: nil) }

  /// - Parameter period: seconds between two pictures; nil for one only.
  static func run(_ options: Options, every period: Double?) throws {
    let watch = try FleetWatch(try options.configuration(), every: period) { picture in
      let text = FleetText(
        picture, width: Terminal.width, hasColour: Terminal.hasColour, listsPools: options.has("pools"))
      options.print(picture.json, text: text.lines.joined(separator: "\n"))
    }
    watch.asksForPools = options.has("pools")
    try watch.run()
  }
}
