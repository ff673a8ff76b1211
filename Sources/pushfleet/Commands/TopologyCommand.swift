import AMQP
import Broker
import PushCore
import Settings

enum TopologyCommand: Command {
  static let page = CommandPage(
    "topology", "declare the exchanges, queues and bindings",
    forms: [.form("--config", ["--holds"], ["--json"])],
    """
    Declares everything on the broker that workers, producers and consumers use. It can be repeated. A queue that exists with
    other settings is reported and left as it is (exit status 78).

    Hold queues (PREFIX.hold.APP) are not declared: a worker declares one when an application's provider first accepts nothing.
    --holds lists the existing hold queues of the configured applications, with their ready messages. RabbitMQ logs an error for
    each application without one, because the queue is looked up by name.
    """,
    [
      .config(), .flag("holds", "also list the existing hold queues"), .json("print one JSON object per queue"),
    ],
    example: "pushfleet topology --config pushfleet.json5")

  static func run(_ options: Options) throws {
    let configuration = try options.configuration()
    let topology = configuration.topology
    let declarer = try TopologyDeclarer(
      configuration, holds: options.has("holds") ? configuration.apps.map { topology.holdQueue($0.id) } : [])
    try declarer.run()
    func show(_ queue: String, ready: Int? = nil) {
      options.print(
        ["queue": queue, "ready": JSONOptional(ready)], text: queue.printable + (ready.map { ": \($0) ready" } ?? ""))
    }
    for queue in topology.queues { show(queue.name) }
    if declarer.hasTrace { show(topology.traceQueue) }
    for (queue, ready) in declarer.found { show(queue, ready: ready) }
    if options.has("holds"), declarer.found.isEmpty { Terminal.say("no hold queue: they are declared when they are needed") }
  }
}

private final class TopologyDeclarer: PublisherClient {
  private let holds: [String]
  private(set) var found: [(queue: String, ready: Int)] = []
  /// True if the stream of request traces exists.
  private(set) var hasTrace = false

  init(_ configuration: Configuration, holds: [String]) throws {
    self.holds = holds
    try super.init(configuration, name: "pushfleet topology")
  }

  override func work() throws {
    try wait { publisher != nil }
    var result: Result<[TopologyNotice], TopologyFailure>?
    publisher?.declareDividing(topology) { result = $0 }
    try wait { result != nil }
    switch result {
    case .success(let notices): for notice in notices { Terminal.notice("\(notice)") }
    case .failure(let failure):
      let isConflict = failure.reason.isFatalConfiguration
      throw CommandFailure(
        isConflict ? .configuration : .unavailable, "\(failure)\(isConflict ? "; delete it, or choose another prefix" : "")")
    case nil: break
    }
    try declareTrace()
    for queue in holds {
      switch try answer(to: .queueInspect(name: queue)) {
      case .success(.queue(let ready, _)): found.append((queue, ready))
      case .success, .failure(.notFound): break
      case .failure(let reason): throw CommandFailure(.unavailable, "queue \(queue): \(reason)")
      }
    }
    try close()
  }

  /// Waits for a connection first.
  private func answer(to command: AMQP.Command) throws -> Result<CommandAnswer, ConnectionEnd> {
    while true {
      try wait { publisher != nil }
      if let answer = try perform(command) { return answer }
    }
  }

  /// Declares the trace; a failure is only reported, because the fleet works without it.
  private func declareTrace() throws {
    guard let settings = configuration.trace else { return }
    for command in topology.traceCommands(settings) {
      guard case .failure(let reason) = try answer(to: command) else { continue }
      return Terminal.notice("the trace can't be declared as configured: \(command.subject): \(reason)")
    }
    hasTrace = true
  }
}
