enum StatusCommand: Command {
  static let page = CommandPage(
    "status", "the fleet at a glance: workers, queues, campaigns",
    forms: [.form("--config", ["--pools"], ["--json"])],
    """
    Shows the ready messages of each queue, the state of the fleet's workers on all hosts, the latencies of the last minute, and
    the campaigns that aren't over. `pushfleet top` shows the same every second.

    Latencies come from histograms: P50 and P99 are estimates within a bucket. `answers` is the provider's round trip. `from
    publishing` begins when the broker received the request, if RabbitMQ notes it (header timestamp_in_ms). Otherwise it begins
    at the request's timestamp, which has whole seconds, so that short times appear as "< 1 s". It leaves out broadcasts.
    """,
    [
      .config(),
      .flag(
        "pools",
        "list credentials with their connections, those in trouble first; without it, only those in trouble. With many "
          + "applications: those in trouble, of the first thirty, and with a hold queue"),
      .json("one JSON object per queue, worker and campaign, and one for the fleet; `kind` tells them apart"),
    ],
    example: "pushfleet status --config pushfleet.json5")

  static func run(_ options: Options) throws { try run(options, every: nil) }

  /// - Parameter period: seconds between two pictures; nil for a single one.
  static func run(_ options: Options, every period: Double?) throws {
    let watch = try FleetWatch(try options.configuration(), every: period) { picture in
      let text = FleetText(
        picture: picture, width: Terminal.width, hasColour: Terminal.hasColour, listsPools: options.has("pools"))
      options.print(picture.json, text: text.lines.joined(separator: "\n"))
    }
    watch.asksForPools = options.has("pools")
    try watch.run()
  }
}
