import AMQP
import Broker
import Reactor
import Settings
import Wire

/// Checks one broker with the configured user: access, topology, permissions and the retry ladder.
final class DoctorBroker: PublisherClient {
  private let uri: BrokerURI
  private var refusal: ConnectionEnd?
  private(set) var findings: [Finding] = []
  private var subject = "broker"
  private let hasLadder: Bool
  private var missing: Set<String> = []
  private var missingQueues: [String] { topology.queues.map(\.name).filter(missing.contains) }
  private var missingExchanges: [String] { topology.exchanges.map(\.name).filter { missing.contains("exchange " + $0) } }
  private var undeclarable: [String] = []
  private var hasDiffering = false
  private var rights: BrokerRights
  private var dead = 0
  /// Queues with consumers.
  private var consumed: Set<String> = []
  private var feedback = 0
  /// Of the last publication; nil before.
  private var outcome: Result<Void, PublishFailure>?
  private var isBlocked = false
  /// Ends the checks, but is no failure of the command.
  private struct NothingMore: Error {}
  /// Seconds to wait for the answer to a publication.
  private static let answerTimeout = 5.0

  /// - Parameter hasLadder: true to test the retry ladder through this broker; the brokers of a cluster share it.
  init(_ configuration: Configuration, _ broker: BrokerAddress, hasLadder: Bool) throws {
    uri = broker.uri
    self.hasLadder = hasLadder
    rights = BrokerRights(topology: configuration.topology, broker: broker.uri)
    try super.init(configuration, name: "pushfleet doctor")
    connection.brokers = [broker]
  }

  override var advice: String { "" }
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
    case .virtualHostRefused, .accessRefused: return "let the user in: " + rights.grant
    default: return "look at the broker's log"
    }
  }

  override func lost(_ reason: ConnectionEnd) {
    guard reason.isRefusal else { return super.lost(reason) }
    refusal = reason
    fail(.configuration, "\(reason)")
  }

  override func work() throws {
    try wait { isUp }
    guard let publisher else { return }
    report(.ok, "reached, and the user may enter", nil)
    findings += BrokerRelease.findings(publisher.server, subject)
    do {
      for exchange in topology.exchanges {
        let declaration = AMQP.Command.exchangeDeclare(name: exchange.name, type: exchange.type, arguments: exchange.arguments)
        try inspect(exchange.name, isQueue: false, declaration, publisher)
      }
      for queue in topology.queues {
        let declaration = AMQP.Command.queueDeclare(name: queue.name, arguments: queue.arguments)
        try inspect(queue.name, isQueue: true, declaration, publisher)
      }
      if missing.isEmpty { try judgeDivision(publisher) }
      // Other products may not refuse these questions, and then they would have effects.
      if publisher.server?.product == BrokerRelease.product {
        for question in rights.questions(configuration, missing: missing) { try ask(question, publisher) }
      }
      try publishToNobody(publisher)
      if hasLadder { try tryLadder(publisher) }
    } catch is NothingMore {}
    sumUp()
    try close()
  }

  /// - Throws: `NothingMore` if the broker accepts no messages.
  private func attend(upTo seconds: Double = .infinity, until isTrue: () -> Bool) throws -> Bool {
    let isInTime = try wait(upTo: seconds) { isBlocked || isTrue() }
    if isBlocked { throw NothingMore() }
    return isInTime
  }

  private func perform(_ command: AMQP.Command, _ publisher: Publisher) throws -> Result<CommandAnswer, ConnectionEnd> {
    guard let answer = try perform(command, unless: { isBlocked }), !isBlocked else { throw NothingMore() }
    return answer
  }

  // MARK: exchanges and queues

  /// Inspects passively, so nothing is created. An existing exchange or queue is then declared again to compare its settings.
  private func inspect(_ name: String, isQueue: Bool, _ declaration: AMQP.Command, _ publisher: Publisher) throws {
    switch try perform(isQueue ? .queueInspect(name: name) : .exchangeInspect(name: name), publisher) {
    case .success(.queue(let ready, let consumers)): note(name, ready, consumers)
    case .failure(.notFound):
      missing.insert(isQueue ? name : "exchange " + name)
      return
    case .failure(let reason) where isQueue: report(.error, "queue \(name): \(reason)", rights.advice)
    case .success, .failure: break
    }
    if case .failure(let reason) = try perform(declaration, publisher) { compare(name, isQueue: isQueue, reason) }
  }

  private func judgeDivision(_ publisher: Publisher) throws {
    let isDivided = if case .success = try perform(topology.divisionQuestion, publisher) { true } else { false }
    let advice = BrokerRights.sameNumber
    if isDivided, topology.laneQueues == 1 {
      report(.error, "lanes have several queues on the broker, but `laneQueues` is 1: workers don't read the others", advice)
    } else if !isDivided, topology.laneQueues > 1 {
      report(.warning, "\(TopologyNotice.isUndivided(queues: topology.laneQueues))", advice)
    }
    for lane in WorkQueue.allCases where !lane.isFanOut {
      for number in topology.laneQueues..<Topology.mostLaneQueues {
        let queue = topology.queue(of: lane, number: number)
        guard case .success(.queue(let ready, _)) = try perform(.queueInspect(name: queue), publisher) else {
          if isDivided { continue } else { break }
        }
        guard ready > 0 else { continue }
        report(
          .error,
          "requests wait in \(queue), which workers with `laneQueues: \(topology.laneQueues)` don't read: \(Figures.count(ready))",
          "run workers with a larger `laneQueues` until it is empty")
      }
      let queues = topology.queues(of: lane)
      let unread = queues.filter { !consumed.contains($0) }
      guard isDivided, !unread.isEmpty, unread.count < queues.count else { continue }
      report(
        .error, "no worker reads \(unread.joined(separator: ", ")), or the queue has no leader: requests wait there",
        "run `rabbitmq-queues quorum_status QUEUE`; if the queue has a leader, \(advice)")
    }
  }

  private func note(_ queue: String, _ ready: Int, _ consumers: Int) {
    if queue == topology.deadQueue { dead = ready }
    if queue == topology.feedbackQueue { feedback = ready }
    if consumers > 0 { consumed.insert(queue) }
  }

  private func compare(_ name: String, isQueue: Bool, _ reason: ConnectionEnd) {
    guard reason.isFatalConfiguration else { return undeclarable(name, reason) }
    hasDiffering = true
    // A missing alternate exchange is only a warning: workers start without it.
    if !isQueue, name == topology.sendExchange, "\(reason)".contains("alternate-exchange") {
      return report(
        .warning, "\(TopologyNotice.dropsUnroutable(exchange: name, alternate: topology.strayExchange))",
        "add that policy, or delete the exchange while there is no publisher and run `pushfleet topology`")
    }
    let deleting = isQueue ? "when it is empty, delete it" : "delete it while there is no publisher"
    report(
      .error, "the \(isQueue ? "queue" : "exchange") \(name) has other settings than the fleet's: \(reason)",
      "\(deleting) and run `pushfleet topology`, or choose another prefix")
  }

  private func undeclarable(_ name: String, _ reason: ConnectionEnd) {
    guard case .accessRefused = reason else { return report(.error, "\(name): \(reason)", "look at the broker's log") }
    // An exchange and a queue may share a name.
    if !undeclarable.contains(name) { undeclarable.append(name) }
  }

  // MARK: permissions

  private func ask(_ question: BrokerRights.Question, _ publisher: Publisher) throws {
    if let command = rights.command(question) {
      if case .failure(.accessRefused) = try perform(command, publisher) { rights.refused.append(question) }
    } else if case .write(let exchange) = question, publisher.canPublish,
      try publish(to: exchange, [], BrokerRights.impossible, publisher) != nil
    {
      rights.refused.append(question)
    }
  }

  /// Publishes an unroutable message: a broker low on memory or disk reports it on the first publication.
  private func publishToNobody(_ publisher: Publisher) throws {
    guard publisher.canPublish else { throw NothingMore() }
    let nobody = Array("\(topology.prefix).doctor.nobody".utf8)
    if let refusal = try publish(to: "", nobody, BasicProperties(), publisher) { reportSilence(refusal) }
  }

  private func reportSilence(_ refusal: ConnectionEnd) {
    report(.error, "workers with this user can't answer those who ask for results: \(refusal)", rights.advice)
  }

  /// Publishes an empty message, and waits for the outcome and for a channel that is open.
  /// - Returns: the refusal that closed the channel, if any.
  private func publish(
    to exchange: String, _ key: [UInt8], _ properties: BasicProperties, _ publisher: Publisher
  ) throws -> ConnectionEnd? {
    outcome = nil
    publisher.publish(exchange: Array(exchange.utf8), routingKey: key, properties: properties, body: [], tag: 0)
    guard try attend(upTo: Self.answerTimeout, until: { outcome != nil && publisher.isReady }) else {
      report(.unreachable, "the broker doesn't confirm a message", "look at its log")
      throw NothingMore()
    }
    return closingRefusal
  }

  /// The refusal of the last publication, if it closed the channel.
  private var closingRefusal: ConnectionEnd? {
    if case .failure(.channelClosed(let reason))? = outcome, reason.isRefusal { reason } else { nil }
  }

  override func confirmed(_ tag: Int) { outcome = .success(()) }
  override func failed(_ tag: Int, _ failure: PublishFailure) { outcome = .failure(failure) }
  override func blocked(_ publisher: Publisher, reason: String) { isBlocked = true }

  // MARK: retries

  /// Seconds by which the message may be late, and the longest step, in milliseconds, to wait for.
  private static let lateness = 2.0
  private static let longestStep: Int64 = 30_000

  /// Sends a test message through the shortest step, unless permissions or topology are known to be incomplete.
  private func tryLadder(_ publisher: Publisher) throws {
    guard let step = topology.ladder.first, step.delay <= Self.longestStep, missing.isEmpty,
      !rights.refused.contains(.write(exchange: topology.retryExchange)), publisher.server?.product == BrokerRelease.product
    else { return }
    for command in topology.doctorCommands {
      if case .failure = try perform(command, publisher) { return }
    }
    var properties = BasicProperties()
    properties.headers = topology.doctorMessage
    outcome = nil
    publisher.publish(
      exchange: Array(topology.retryExchange.utf8), routingKey: Array(step.name.utf8), properties: properties, body: [], tag: 0)
    var pause = Double(step.delay) / 1_000
    let deadline = loop.now.advanced(bySeconds: pause + Self.lateness)
    while try !attend(upTo: pause, until: { hasFailed }) {
      if case .success(.queue(1..., _)) = try perform(.queueInspect(name: topology.doctorQueue), publisher) {
        return report(.ok, "retries come back from the ladder", nil)
      }
      guard loop.now < deadline else {
        return report(
          .unreachable, "retries stand still: a message of the step \(step.name) is \(Int(Self.lateness)) s late",
          "see docs/operate/runbook.md#retries-stand-still")
      }
      pause = 0.1
    }
    if let closingRefusal { reportSilence(closingRefusal) }
  }

  private var hasFailed: Bool { if case .failure? = outcome { true } else { false } }

  // MARK: the end

  private func sumUp() {
    sumUpTopology()
    findings += rights.findings(subject)
    if isBlocked {
      report(.unreachable, "the broker accepts no messages: it is low on memory or disk", "see `rabbitmq-diagnostics alarms`")
    }
    if topology.areLanesIdle(consumed) {
      report(
        .warning, "workers run, but take nothing: every provider is in trouble", "see which and why: `pushfleet status`")
    } else if missingQueues.isEmpty, consumed.isDisjoint(with: topology.allLaneQueues) {
      report(.warning, "no worker consumes: requests wait", "start a worker")
    }
    if dead > 0 { report(.warning, LetterPlace.dead.count(dead), "look at them: `pushfleet dead list`") }
    if feedback > 100_000 {
      report(.warning, "\(Figures.count(feedback)) feedback events wait", "read them: `pushfleet feedback`")
    }
  }

  private func sumUpTopology() {
    let count = topology.queues.count
    let advice =
      topology.laneQueues == 1
      ? "run `pushfleet topology`, or start a worker"
      : "start a worker; follow docs/operate/scaling.md#changing-the-number-of-queues before you run `pushfleet topology`"
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
    guard isUp, reason != .closedHere else { return super.ended(publisher, reason) }
    fail(.unavailable, "the connection was lost: \(reason)")
  }
}
