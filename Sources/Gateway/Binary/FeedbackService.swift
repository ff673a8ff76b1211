import AMQP
import Broker
import Reactor
import Wire

/// Gives connections of the feedback service the lists of their applications.
final class FeedbackService {
  /// Lists read at the same time. Each needs a connection to the broker.
  static let most = 16

  private let topology: Topology
  private let loop: EventLoop
  private let broker: GatewayBroker
  private let brokers: [BrokerAddress]
  private var lists: [ObjectIdentifier: FeedbackList] = [:]
  private var waiting: [FeedbackTurn] = []
  /// Turns that wait for the length of their queue.
  private var asking = 0
  private let figures: BinaryFigures
  private let listsBadTokens: Bool

  init(
    _ topology: Topology, loop: EventLoop, broker: GatewayBroker, brokers: [BrokerAddress], figures: BinaryFigures,
    listsBadTokens: Bool
  ) {
    self.listsBadTokens = listsBadTokens
    self.figures = figures
    self.topology = topology
    self.loop = loop
    self.broker = broker
    self.brokers = brokers
  }

  var isIdle: Bool { lists.isEmpty }

  /// Ends the connections that wait for a list.
  func drain() {
    for turn in waiting { turn.fail() }
    waiting = []
  }

  func open(_ app: [UInt8], _ reader: any FeedbackReader) -> FeedbackConnection.Settle {
    let turn = FeedbackTurn(topology.binaryFeedbackQueue(String(decoding: app, as: UTF8.self)), reader)
    waiting.append(turn)
    loop.schedule(after: 0) { [weak self] in self?.goOn() }
    return turn.settle
  }

  private func goOn() {
    waiting.removeAll(where: \.isSettled)
    while asking + lists.count < Self.most, !waiting.isEmpty { begin(waiting.removeFirst()) }
  }

  private func begin(_ turn: FeedbackTurn) {
    asking += 1
    broker.countReady(turn.queue) { [weak self] count in
      guard let self else { return }
      asking -= 1
      defer { goOn() }
      guard !turn.isSettled else { return }
      guard let count else { return turn.fail() }
      guard count > 0, let reader = turn.reader else { return turn.end() }
      let list = FeedbackList(
        queue: turn.queue, count: count, listsBadTokens: listsBadTokens,
        connection: BrokerConnection(loop: loop, brokers: brokers), time: loop.time,
        settings: { ConnectionSettings(broker: $0, name: "pushfleet gateway, \(ThisProcess.name), feedback service") },
        reader: reader
      ) { [weak self] list in
        self?.figures.feedback += list.taken
        self?.lists[ObjectIdentifier(list)] = nil
        self?.goOn()
      }
      lists[ObjectIdentifier(list)] = list
      turn.list = list
    }
  }
}

/// A connection's turn to read its application's list.
final class FeedbackTurn {
  let queue: String
  private(set) weak var reader: (any FeedbackReader)?
  var list: FeedbackList?
  private(set) var isSettled = false

  init(_ queue: String, _ reader: any FeedbackReader) {
    self.queue = queue
    self.reader = reader
  }

  func end() { reader?.feedbackEnded() }
  func fail() { reader?.feedbackFailed() }

  func settle(isTaken: Bool) {
    isSettled = true
    list?.settle(isTaken: isTaken)
    list = nil
  }
}
