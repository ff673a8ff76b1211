import Broker
import DeviceRegistry

enum LanesCommand: Command {
  static let page = CommandPage(
    "lanes", "pause, resume, drain and empty the queues of requests",
    forms: RegistrySession.forms("LANE"),
    """
    A lane has the requests of all applications. `pushfleet apps` stops one application. Every worker follows within two seconds.

    pause: no worker consumes the lane, and its requests wait. Requests that workers already have in hand are still sent.

    drain sends what waits and refuses new requests: they become dead letters, which can be replayed after resume. In a lane of
    broadcasts, those that have begun are sent, and new ones are refused.

    discard deletes what waits in a paused lane, for good and without an outcome.
    """,
    .list(
      RegistrySession.options + [
        .operand("LANE", "send.high or send.normal; fanout.high or fanout.normal for the pages of broadcasts"),
        .json("one JSON object for each lane"),
      ]),
    example: "pushfleet lanes pause fanout.normal --config pushfleet.json5 --until 30m")

  static func run(_ options: Options) throws {
    let session = try RegistrySession(options)
    try session.control(Topology.lanes, "a lane", options, ControlSubject.lane) { lane in
      try HeldCommand.discard(options, session, lane, .lane(lane.text))
      return nil
    }
  }
}
