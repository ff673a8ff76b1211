import AMQP
import Broker
import Reactor
import Settings
import Wire

/// Checks one broker with the configured user: access, topology, permissions and the retry ladder.
final class DoctorBroker: PublisherClient {
  private struct Thing {
    let name: String
    let isQueue: Bool
    let declaration: AMQP.Command
  }

  private enum Step {
    case thing(Thing)
    case rights
    case right(BrokerRights.Question)
    case defaultExchange
    case ladder
  }

  private let uri: BrokerURI
  private var refusal: ConnectionEnd?
  private(set) var findings: [Finding] = []
  private var subject = "broker"
  private var steps: [Step]
  private var missing: Set<String> = []
  private var missingQueues: [String] { topology.queues.map(\.name).filter(missing.contains) }
  private var missingExchanges: [String] { topology.exchanges.map(\.name).filter { missing.contains("exchange " + $0) } }
  private var undeclarable: [String] = []
  private var hasDiffering = false
  private var rights: BrokerRights
  private var dead = 0
  private var consumers: LaneConsumers
  private var feedback = 0
  /// The question that the current publication asks.
  private var asked: BrokerRights.Question?
  private var isBlocked = false
  private var isConcluded = false
  /// Seconds to wait for the answer to a publication.
  private static let answerTimeout = 5.0

  /// - Parameter hasLadder: true to test the retry ladder through this broker; the brokers of a cluster share it.
  init(_ configuration: Configuration, _ broker: BrokerAddress, hasLadder: Bool) throws {
    let topology = configuration.topology
    uri = broker.uri
    rights = BrokerRights(topology: topology, broker: broker.uri)
    consumers = LaneConsumers(topology)
    let things =
      topology.exchanges.map { exchange in
        let command = AMQP.Command.exchangeDeclare(name: exchange.name, type: exchange.type, arguments: exchange.arguments)
        return Thing(name: exchange.name, isQueue: false, declaration: command)
      }
      + topology.queues.map { queue in
        Thing(name: queue.name, isQueue: true, declaration: .queueDeclare(name: queue.name, arguments: queue.arguments))
      }
    steps = things.map { .thing($0) } + [.rights, .defaultExchange] + (hasLadder ? [.ladder] : [])
    try super.init(configuration) { ConnectionSettings(broker: $0, name: "pushfleet doctor") }
    connection.brokers = [broker]
  }

  override func dials(_ broker: BrokerURI) { subject = "broker \(broker.host):\(broker.port)" }

  /// All findings; one of them says so if the broker can't be used.
  func look() throws -> [Finding] {
    do { try run() } catch let failure as CommandFailure {
      guard failure.status != .interrupted else { throw failure }
      let isConfiguration = failure.status == .configuration
      let advice = "check that it runs, and that host, port and `ca` of `broker` are right"
      report(isConfiguration ? .error : .unreachable, failure.message, isConfiguration ? remedy(for: refusal) : advice)
    }
    return findings
  }

  private func remedy(for refusal: ConnectionEnd?) -> String {
    let (user, host) = (ShellCommand.quoted(uri.user), ShellCommand.quoted(uri.virtualHost))
    switch refusal {
    case .authenticationRefused where uri.isExternal:
      return "turn on `rabbitmq_auth_mechanism_ssl`, offer EXTERNAL in `auth_mechanisms`, and make the user that "
        + "`brokerCertificate` names: `rabbitmqctl list_users` shows whether it is there"
    case .authenticationRefused:
      return "correct user and password of `broker`, or set it: `rabbitmqctl change_password \(user)` asks for it; "
        + "`rabbitmqctl list_users` shows whether the user is there"
    case .virtualHostRefused(let text) where text.contains("not found"):
      return "correct the virtual host of `broker`, or make it: `rabbitmqctl add_vhost \(host)`"
    case .virtualHostRefused, .accessRefused: return "let the user in: " + rights.advice
    default: return "look at the broker's log"
    }
  }

  override func lost(_ reason: ConnectionEnd) {
    guard reason.isRefusal else { return super.lost(reason) }
    refusal = reason
    fail(.configuration, "\(reason)")
  }

  override func ready(_ publisher: Publisher) {
    self.publisher = publisher
    if !isUp {
      up()
      report(.ok, "reached, and the user may enter", nil)
      findings += BrokerRelease.findings(publisher.server, subject)
    }
    // Also called again after a refused publication.
    proceed()
  }

  private func proceed() {
    guard let publisher, publisher.isReady else { return }
    guard let step = steps.first else { return conclude(publisher) }
    steps.removeFirst()
    switch step {
    case .thing(let thing): inspect(thing, publisher)
    case .rights:
      // Other products may not refuse these questions, and then they would have effects.
      guard publisher.server?.product == BrokerRelease.product else { return proceed() }
      steps.insert(contentsOf: rights.questions(configuration, missing: missing).map { .right($0) }, at: 0)
      proceed()
    case .right(let question): ask(question, publisher)
    case .defaultExchange: publishToNobody(publisher)
    case .ladder: tryLadder(publisher)
    }
  }

  // MARK: exchanges and queues

  /// Inspects passively, so nothing is created. An existing exchange or queue is then declared again to compare its settings.
  private func inspect(_ thing: Thing, _ publisher: Publisher) {
    perform(thing.isQueue ? .queueInspect(name: thing.name) : .exchangeInspect(name: thing.name), publisher) {
      [unowned self] answer in
      switch answer {
      case .success(.queue(let ready, let consumers)): note(thing.name, ready, consumers)
      case .failure(.notFound):
        missing.insert(thing.isQueue ? thing.name : "exchange " + thing.name)
        return proceed()
      case .failure(let reason) where thing.isQueue: report(.error, "queue \(thing.name): \(reason)", rights.advice)
      case .success, .failure: break
      }
      perform(thing.declaration, publisher) { [unowned self] answer in
        if case .failure(let reason) = answer { compare(thing, reason) }
        proceed()
      }
    }
  }

  private func note(_ queue: String, _ ready: Int, _ consumers: Int) {
    if queue == topology.deadQueue { dead = ready }
    if queue == topology.feedbackQueue { feedback = ready }
    self.consumers.note(queue, consumers)
  }

  private func compare(_ thing: Thing, _ reason: ConnectionEnd) {
    guard reason.isFatalConfiguration else { return undeclarable(thing.name, reason) }
    hasDiffering = true
    // A missing alternate exchange is only a warning: workers start without it.
    if !thing.isQueue, thing.name == topology.sendExchange, "\(reason)".contains("alternate-exchange") {
      return report(
        .warning, "\(TopologyNotice.dropsUnroutable(exchange: thing.name, alternate: topology.strayExchange))",
        "add that policy, or delete the exchange while there is no publisher and run `pushfleet topology`")
    }
    let deleting = thing.isQueue ? "when it is empty, delete it" : "delete it while there is no publisher"
    report(
      .error, "the \(thing.isQueue ? "queue" : "exchange") \(thing.name) has other settings than the fleet's: \(reason)",
      "\(deleting) and run `pushfleet topology`, or choose another prefix")
  }

  private func undeclarable(_ name: String, _ reason: ConnectionEnd) {
    guard case .accessRefused = reason else { return report(.error, "\(name): \(reason)", "look at the broker's log") }
    // An exchange and a queue may share a name.
    if !undeclarable.contains(name) { undeclarable.append(name) }
  }

  /// - Parameter completion: not called after the connection is lost.
  private func perform(
    _ command: AMQP.Command, _ publisher: Publisher, _ completion: @escaping (Result<CommandAnswer, ConnectionEnd>) -> Void
  ) {
    publisher.perform(command) { [weak publisher] answer in
      if case .failure = answer, publisher?.isReady != true { return }
      completion(answer)
    }
  }

  // MARK: permissions

  private func ask(_ question: BrokerRights.Question, _ publisher: Publisher) {
    guard let command = rights.command(question) else {
      guard case .write(let exchange) = question, publisher.canPublish else { return proceed() }
      asked = question
      publisher.publish(
        exchange: Array(exchange.utf8), routingKey: [], properties: BrokerRights.impossible, body: [], tag: 1)
      return watchForAnswer()
    }
    perform(command, publisher) { [unowned self] answer in
      if case .failure(.accessRefused) = answer { rights.refused.append(question) }
      proceed()
    }
  }

  /// Publishes an unroutable message: a broker low on memory or disk reports it on the first publication.
  private func publishToNobody(_ publisher: Publisher) {
    guard publisher.canPublish else { return conclude(publisher) }
    publisher.publish(
      exchange: [], routingKey: Array("\(topology.prefix).doctor.nobody".utf8), properties: BasicProperties(), body: [], tag: 0)
    watchForAnswer()
  }

  private func watchForAnswer() {
    let left = steps.count
    loop.schedule(after: Self.answerTimeout) { [weak self] in
      guard let self, let publisher, left == steps.count else { return }
      if !isBlocked, !isConcluded { report(.unreachable, "the broker doesn't confirm a message", "look at its log") }
      conclude(publisher)
    }
  }

  override func confirmed(_ tag: Int) {
    if tag != Self.ladderTag { proceed() }
  }

  override func failed(_ tag: Int, _ failure: PublishFailure) {
    if case .channelClosed(let reason) = failure, reason.isRefusal {
      if let asked {
        rights.refused.append(asked)
      } else {
        report(.error, "workers with this user can't answer those who ask for results: \(reason)", rights.advice)
      }
    }
    asked = nil
    // After a closed channel, `ready` proceeds when a new one is open.
    proceed()
  }

  override func blocked(_ publisher: Publisher, reason: String) {
    isBlocked = true
    conclude(publisher)
  }
  override func unblocked(_ publisher: Publisher) { isBlocked = false }

  // MARK: retries

  private static let ladderTag = 2
  /// Seconds by which the message may be late, and the longest step, in milliseconds, to wait for.
  private static let lateness = 2.0
  private static let longestStep: Int64 = 30_000

  /// Sends a test message through the shortest step, unless permissions or topology are known to be incomplete.
  private func tryLadder(_ publisher: Publisher) {
    guard let step = topology.ladder.first, step.delay <= Self.longestStep, missing.isEmpty,
      !rights.refused.contains(.write(exchange: topology.retryExchange)), publisher.server?.product == BrokerRelease.product
    else { return proceed() }
    declare(topology.doctorCommands[...], publisher) { [unowned self] in
      var properties = BasicProperties()
      properties.headers = topology.doctorMessage
      publisher.publish(
        exchange: Array(topology.retryExchange.utf8), routingKey: Array(step.name.utf8), properties: properties, body: [],
        tag: Self.ladderTag)
      let delay = Double(step.delay) / 1_000
      let deadline = loop.now.advanced(bySeconds: delay + Self.lateness)
      loop.schedule(after: delay) { [weak self] in self?.lookForReturn(from: step, until: deadline) }
    }
  }

  private func declare(_ commands: ArraySlice<AMQP.Command>, _ publisher: Publisher, _ completion: @escaping () -> Void) {
    guard let command = commands.first else { return completion() }
    perform(command, publisher) { [unowned self] answer in
      if case .failure = answer { return proceed() }
      declare(commands.dropFirst(), publisher, completion)
    }
  }

  private func lookForReturn(from step: RetryStep, until deadline: MonotonicTime) {
    guard let publisher, !isConcluded else { return }
    perform(.queueInspect(name: topology.doctorQueue), publisher) { [unowned self] answer in
      if case .success(.queue(1..., _)) = answer {
        report(.ok, "retries come back from the ladder", nil)
      } else if loop.now < deadline {
        loop.schedule(after: 0.1) { [weak self] in self?.lookForReturn(from: step, until: deadline) }
        return
      } else {
        report(
          .unreachable, "retries stand still: a message of the step \(step.name) is \(Int(Self.lateness)) s late",
          "see docs/operate/runbook.md#retries-stand-still")
      }
      proceed()
    }
  }

  // MARK: the end

  private func conclude(_ publisher: Publisher) {
    guard !isConcluded else { return }
    isConcluded = true
    sumUpTopology()
    findings += rights.findings(subject)
    if isBlocked {
      report(.unreachable, "the broker accepts no messages: it is low on memory or disk", "see `rabbitmq-diagnostics alarms`")
    }
    if consumers.areIdle {
      report(
        .warning, "workers run, but take nothing: every provider is in trouble", "see which and why: `pushfleet status`")
    } else if missingQueues.isEmpty, consumers.areNone {
      report(.warning, "no worker consumes: requests wait", "start a worker")
    }
    if dead > 0 { report(.warning, "\(Figures.count(dead)) dead letters", "look at them: `pushfleet dead list`") }
    if feedback > 100_000 {
      report(.warning, "\(Figures.count(feedback)) feedback events wait", "read them: `pushfleet feedback`")
    }
    publisher.close()
  }

  private func sumUpTopology() {
    let count = topology.queues.count
    let advice = "run `pushfleet topology`, or start a worker"
    if !missingQueues.isEmpty {
      report(
        .error, "\(missingQueues.count) of \(count) queues are missing: \(missingQueues.joined(separator: ", "))", advice)
    }
    if !missingExchanges.isEmpty {
      report(.error, "exchanges are missing: \(missingExchanges.joined(separator: ", "))", advice)
    }
    if !undeclarable.isEmpty {
      report(.error, "workers with this user may not declare \(undeclarable.joined(separator: ", "))", rights.advice)
    }
    if missing.isEmpty, undeclarable.isEmpty, !hasDiffering {
      report(.ok, "all \(count) queues and \(topology.exchanges.count) exchanges are there, with the fleet's settings", nil)
    }
  }

  private func report(_ level: Finding.Level, _ sentence: String, _ remedy: String?) {
    findings.append(Finding(level, subject, sentence, remedy))
  }

  override func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    if reason == .closedHere { return finish() }
    if isUp { return fail(.unavailable, "the connection was lost: \(reason)") }
    lost(reason)
  }
}
