import AMQP
import Broker
import Settings

/// What a worker needs of the broker's user, found out without any effect: each question is one that the broker refuses in any case, but first
/// for the lack of the permission. (RabbitMQ looks at the user before it looks at what he asks for; each leaves a line in its log.)
struct BrokerRights {
  /// Queues that workers consume.
  private(set) var unreadable: [String] = []
  /// Exchanges that workers publish to.
  private(set) var unwritable: [String] = []
  private(set) var cannotHold = false
  private(set) var cannotAnswer = false

  enum Question {
    /// May the queue be consumed?
    case read(queue: String)
    /// May a message go to the exchange?
    case write(exchange: String)
    /// May hold queues, and the queues by which workers answer `pushfleet status`, be declared?
    case hold
    case answer
  }

  private let topology: Topology
  private let broker: BrokerURI

  init(_ topology: Topology, _ broker: BrokerURI) {
    self.topology = topology
    self.broker = broker
  }

  /// A line for the broker's machine that gives a worker's user what it needs, as deploy/rabbitmq/definitions.json does.
  static func grant(_ prefix: String, _ broker: BrokerURI) -> String {
    let own = "^" + prefix.replacing(".", with: "\\.") + "\\..*"
    let write = "^(" + own.dropFirst() + "|amq\\.default)$"
    let words = [broker.virtualHost, broker.user, own, write, own].map(ShellCommand.quoted)
    return "`rabbitmqctl set_permissions -p \(words.joined(separator: " "))`"
  }

  /// - Parameter missing: queues and exchanges that aren't there.
  func questions(_ configuration: Configuration, missing: Set<String>) -> [Question] {
    var queues = Topology.lanes.map(topology.name) + [topology.quarantineQueue]
    if configuration.registry != nil { queues += [topology.registryQueue, topology.acknowledgementQueue] }
    let exchanges = [
      topology.fanoutExchange, topology.retryExchange, topology.holdExchange, topology.eventsExchange, topology.deadExchange,
    ]
    return queues.filter { !missing.contains($0) }.map { .read(queue: $0) } + [.hold, .answer]
      + exchanges.filter { !missing.contains("exchange " + $0) }.map { .write(exchange: $0) }
  }

  /// How it is asked on the channel of commands; nil where it is by a publication that can't be taken.
  func command(_ question: Question) -> AMQP.Command? {
    let impossible: FieldTable = ["x-queue-type": .text("quorum"), "x-expires": .text("none")]
    switch question {
    case .read(let queue): return .consumeRight(queue: queue)
    case .write: return nil
    case .hold: return .queueDeclare(name: topology.holdQueue("pushfleet-doctor"), arguments: impossible)
    case .answer: return .queueDeclare(name: topology.controlExchange + ".pushfleet-doctor", arguments: impossible)
    }
  }

  /// No message has such an expiration: the broker says so to whoever may write.
  static var impossible: BasicProperties {
    var properties = BasicProperties()
    properties.expiration = Array("pushfleet doctor".utf8)
    return properties
  }

  mutating func refused(_ question: Question) {
    switch question {
    case .read(let queue): unreadable.append(queue)
    case .write(let exchange): unwritable.append(exchange)
    case .hold: cannotHold = true
    case .answer: cannotAnswer = true
    }
  }

  /// What is wrong, and what to do.
  func findings(_ subject: String) -> [Finding] {
    let advice = Self.grant(topology.prefix, broker) + " (docs/operations.md, Users and permissions)"
    let refused: [(isRefused: Bool, level: Finding.Level, sentence: String)] = [
      (!unreadable.isEmpty, .error, "workers with this user may not read \(unreadable.joined(separator: ", "))"),
      (!unwritable.isEmpty, .error, "workers with this user may not write to \(unwritable.joined(separator: ", "))"),
      (
        cannotHold, .warning,
        "workers with this user can't declare hold queues (\(topology.holdQueue("APP"))): while a provider is in trouble, "
          + "its requests go round by the ladder"
      ),
      (
        cannotAnswer, .warning,
        "workers with this user can't answer `pushfleet status` (\(topology.controlExchange).…): they deliver all the same"
      ),
    ]
    return refused.filter(\.isRefused).map { Finding($0.level, subject, $0.sentence, advice) }
  }
}
