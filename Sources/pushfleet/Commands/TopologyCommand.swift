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
    try super.init(configuration) { ConnectionSettings(broker: $0, name: "pushfleet topology") }
  }

  override func ready(_ publisher: Publisher) {
    up()
    publisher.declare(topology) { [unowned self] result in
      switch result {
      case .success(let notices):
        for notice in notices { Terminal.notice("\(notice)") }
        declareTrace((configuration.trace.map(topology.traceCommands) ?? [])[...], publisher)
      case .failure(let failure):
        let isConflict = failure.reason.isFatalConfiguration
        fail(
          isConflict ? .configuration : .unavailable, "\(failure)\(isConflict ? "; delete it, or choose another prefix" : "")")
      }
    }
  }

  /// Declares the trace; a failure is only reported, because the fleet works without it.
  private func declareTrace(_ commands: ArraySlice<AMQP.Command>, _ publisher: Publisher) {
    guard let command = commands.first else { return look(for: holds[...], publisher) }
    publisher.perform(command) { [unowned self] answer in
      switch answer {
      case .success:
        hasTrace = commands.count == 1
        declareTrace(commands.dropFirst(), publisher)
      case .failure(let reason):
        Terminal.notice("the trace can't be declared as configured: \(command.subject): \(reason)")
        look(for: holds[...], publisher)
      }
    }
  }

  private func look(for queues: ArraySlice<String>, _ publisher: Publisher) {
    guard let queue = queues.first else { return publisher.close() }
    publisher.perform(.queueInspect(name: queue)) { [unowned self] answer in
      switch answer {
      case .success(.queue(let ready, _)): found.append((queue, ready))
      case .success, .failure(.notFound): break
      case .failure(let reason): return fail(.unavailable, "queue \(queue): \(reason)")
      }
      look(for: queues.dropFirst(), publisher)
    }
  }
}
