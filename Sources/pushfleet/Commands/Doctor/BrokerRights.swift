import AMQP
import Broker
import Settings

/// Finds out, without side effects, whether the broker's user has a worker's permissions. Each question is a command that the
/// broker refuses in any case, but first for a missing permission. (RabbitMQ checks permissions first, and logs each refusal.)
struct BrokerRights {
  /// The questions that the broker has answered with a refusal.
  var refused: [Question] = []

  enum Question: Equatable {
    case read(queue: String)
    case write(exchange: String)
    /// Permission to declare hold queues, and the queues that receive the questions of `pushfleet status`.
    case hold
    case answer
  }

  /// The remedy for processes that disagree about the queues of a lane.
  static let sameNumber =
    "give all workers, gateways and consoles the larger `laneQueues`, restart them, and then run `pushfleet topology` "
    + "(docs/operate/scaling.md#changing-the-number-of-queues)"

  let topology: Topology
  let broker: BrokerURI

  /// A `rabbitmqctl` command that gives a worker's user its permissions, as deploy/rabbitmq/definitions.json does.
  static func grant(_ prefix: String, _ broker: BrokerURI) -> String {
    let own = "^" + prefix.replacing(".", with: "\\.") + "\\..*"
    let write = "^(" + own.dropFirst() + "|amq\\.default)$"
    let words = [broker.virtualHost, broker.user, own, write, own].map(ShellCommand.quoted)
    return "`rabbitmqctl set_permissions -p \(words.joined(separator: " "))`"
  }

  var advice: String { "if workers use this user: " + grant }
  var grant: String { Self.grant(topology.prefix, broker) + " (docs/operate/permissions.md)" }

  func questions(_ configuration: Configuration, missing: Set<String>) -> [Question] {
    var queues = topology.allLaneQueues + [topology.quarantineQueue]
    if configuration.registry != nil { queues += [topology.registryQueue, topology.acknowledgementQueue] }
    let exchanges = [
      topology.fanoutExchange, topology.retryExchange, topology.holdExchange, topology.eventsExchange, topology.deadExchange,
    ]
    return queues.filter { !missing.contains($0) }.map { .read(queue: $0) } + [.hold, .answer]
      + exchanges.filter { !missing.contains("exchange " + $0) }.map { .write(exchange: $0) }
  }

  /// The AMQP command that asks; nil for a question that a refused publication asks.
  func command(_ question: Question) -> AMQP.Command? {
    let impossible: FieldTable = ["x-queue-type": .text("quorum"), "x-expires": .text("none")]
    switch question {
    case .read(let queue): return .consumeRight(queue: queue)
    case .write: return nil
    case .hold: return .queueDeclare(name: topology.holdQueue("pushfleet-doctor"), arguments: impossible)
    case .answer: return .queueDeclare(name: topology.controlExchange + ".pushfleet-doctor", arguments: impossible)
    }
  }

  /// An invalid expiration: the broker rejects the message, but checks the permission first.
  static var impossible: BasicProperties {
    var properties = BasicProperties()
    properties.expiration = Array("pushfleet doctor".utf8)
    return properties
  }

  func findings(_ subject: String) -> [Finding] {
    let unreadable = refused.compactMap { if case .read(let queue) = $0 { queue } else { nil } }
    let unwritable = refused.compactMap { if case .write(let exchange) = $0 { exchange } else { nil } }
    let rows: [(isRefused: Bool, level: Finding.Level, sentence: String)] = [
      (!unreadable.isEmpty, .error, "workers with this user may not read \(unreadable.joined(separator: ", "))"),
      (!unwritable.isEmpty, .error, "workers with this user may not write to \(unwritable.joined(separator: ", "))"),
      (
        refused.contains(.hold), .warning,
        "workers with this user can't declare hold queues (\(topology.holdQueue("APP"))): while a provider is in trouble, "
          + "its requests wait on the retry ladder"
      ),
      (
        refused.contains(.answer), .warning,
        "workers with this user can't answer `pushfleet status` (\(topology.controlExchange).…); they still deliver"
      ),
    ]
    return rows.filter(\.isRefused).map { Finding($0.level, subject, $0.sentence, advice) }
  }
}

enum BrokerRelease {
  static let product = "RabbitMQ"
  /// The first release whose quorum queues keep a dead letter until the next queue has it.
  private static let oldest = (major: 3, minor: 10)
  /// The newest major version with known behaviour.
  private static let newestMajor = 4

  /// Empty if the broker doesn't describe itself.
  static func findings(_ server: BrokerServer?, _ subject: String) -> [Finding] {
    guard let server, !server.product.isEmpty else { return [] }
    func finding(_ level: Finding.Level, _ sentence: String, _ remedy: String? = nil) -> [Finding] {
      [Finding(level, subject, sentence, remedy)]
    }
    let name = "\(server.product) \(server.version)"
    guard server.product == product else {
      return finding(
        .warning, "this broker is \(name): the fleet needs RabbitMQ's quorum queues", "use RabbitMQ 3.10 or newer")
    }
    guard let release = server.release else { return finding(.warning, "its version, \(name), is unknown to this program") }
    if release < oldest {
      return finding(
        .error, "\(name) is too old: its quorum queues lose dead letters that the next queue doesn't accept",
        "upgrade it to 3.10 or newer")
    }
    guard release.major > newestMajor else { return finding(.ok, name) }
    return finding(
      .warning, "\(name) is newer than the releases that the fleet is known to run with (3.10 to 4.x)",
      "try it with a test fleet first")
  }
}
