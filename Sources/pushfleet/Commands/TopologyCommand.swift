import AMQP
import Broker
import PushCore
import Settings

enum TopologyCommand: Command {
  static let page = CommandPage(
    "topology", "declare the exchanges, queues and bindings",
    forms: [.form("--config", ["--holds"], ["--json"])],
    """
    Declares on the broker everything that workers, producers and consumers use. Can be repeated; a queue that exists with
    other settings is named and left as it is (exit status 78).

    Hold queues (PREFIX.hold.APP) are not declared: workers do so when an application's provider first takes nothing. --holds
    lists those that configured applications have, with what is ready in them. RabbitMQ logs an error for each application that
    has none, since it is asked by name.
    """,
    [
      .config(), .flag("holds", "list the hold queues that exist as well"), .json("print one JSON object per queue"),
    ],
    example: "pushfleet topology --config pushfleet.json5")

  static func run(_ options: Options) throws {
    let configuration = try options.configuration()
    let topology = configuration.topology
    let declarer = try TopologyDeclarer(
      configuration, topology, holds: options.has("holds") ? configuration.apps.map { topology.holdQueue($0.id) } : [])
    try declarer.run()
    /// - Parameter ready: messages in it, of a hold queue.
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

/// Declares the topology, asks for hold queues, and ends.
private final class TopologyDeclarer: PublisherClient {
  private let topology: Topology
  private let holds: [String]
  /// Hold queues that exist, with the messages that are ready in them.
  private(set) var found: [(queue: String, ready: Int)] = []
  /// The stream of what became of requests is there.
  private(set) var hasTrace = false

  init(_ configuration: Configuration, _ topology: Topology, holds: [String]) throws {
    self.topology = topology
    self.holds = holds
    try super.init(configuration) { ConnectionSettings(broker: $0, name: "pushfleet topology") }
  }

  override func ready(_ publisher: Publisher) {
    up()
    publisher.declare(topology) { [unowned self] result in
      switch result {
      case .success(let notices):
        for notice in notices { Terminal.complain("\(notice)") }
        declareTrace((configuration.trace.map(topology.traceCommands) ?? [])[...], publisher)
      case .failure(let failure):
        let isConflict = failure.reason.isFatalConfiguration
        fail(
          isConflict ? .configuration : .unavailable, "\(failure)\(isConflict ? "; delete it, or choose another prefix" : "")")
      }
    }
  }

  /// The fleet does its work without.
  private func declareTrace(_ commands: ArraySlice<AMQP.Command>, _ publisher: Publisher) {
    guard let command = commands.first else { return look(for: holds[...], publisher) }
    publisher.perform(command) { [unowned self] answer in
      switch answer {
      case .success:
        hasTrace = commands.count == 1
        declareTrace(commands.dropFirst(), publisher)
      case .failure(let reason):
        Terminal.complain("the trace can't be declared as configured: \(command.subject): \(reason)")
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
