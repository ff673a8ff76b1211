import AMQP
import Worker

enum TopologyCommand: Command {
  static let name = "topology"
  static let summary = "declare the exchanges, queues and bindings"
  static let help = """
    Usage: pushfleet topology --config FILE [--json]

    Declares on the broker everything that workers, producers and consumers use. Can be repeated; a queue that exists with
    other settings is named and left as it is (exit status 78).

      --config FILE   the configuration (or PUSHFLEET_CONFIG)
      --json          print one JSON object per queue

    Example: pushfleet topology --config pushfleet.json5
    """

  static func run(_ arguments: inout [String]) throws {
    let options = try Options(arguments, values: ["config"], flags: ["json"])
    try options.refuseOperands()
    let configuration = try options.configuration()
    let topology = configuration.topology
    try TopologyDeclarer(configuration, topology).run()
    for queue in topology.queues {
      Terminal.print(options.has("json") ? #"{"queue":"\#(queue.name)"}"# : queue.name)
    }
  }
}

/// Declares the topology and ends.
private final class TopologyDeclarer: BrokerClient, PublisherHandler {
  private let topology: Topology

  init(_ configuration: Configuration, _ topology: Topology) throws {
    self.topology = topology
    try super.init(configuration)
    connection.makeMachine = { [unowned self] broker in
      Publisher(settings: ConnectionSettings(broker: broker, name: "pushfleet topology"), handler: self)
    }
  }

  func ready(_ publisher: Publisher) {
    up()
    publisher.declare(topology) { [unowned self] result in
      switch result {
      case .success(let notices):
        for notice in notices { Terminal.complain("\(notice)") }
        publisher.close()
      case .failure(let failure):
        let isConflict = failure.reason.isFatalConfiguration
        fail(
          isConflict ? .configuration : .unavailable, "\(failure)\(isConflict ? "; delete it, or choose another prefix" : "")")
      }
    }
  }

  func confirmed(_ tag: Int) {}
  func failed(_ tag: Int, _ failure: PublishFailure) {}
  func blocked(_ publisher: Publisher, reason: String) {}
  func unblocked(_ publisher: Publisher) {}

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    if reason == .closedHere { finish() } else { lost(reason) }
  }
}
