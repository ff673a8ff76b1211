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
  private var waiting: [FeedbackList] = []
  /// Lists that wait for the length of their queue.
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
    for list in waiting { list.fail() }
    waiting = []
  }

  func open(_ app: [UInt8], _ reader: any FeedbackReader) -> FeedbackConnection.Settle {
    let list = FeedbackList(
      queue: topology.binaryFeedbackQueue(String(decoding: app, as: UTF8.self)), listsBadTokens: listsBadTokens,
      time: loop.time,
      reader: reader)
    waiting.append(list)
    loop.schedule(after: 0) { [weak self] in self?.goOn() }
    return list.settle
  }

  private func goOn() {
    waiting.removeAll(where: \.isSettled)
    while asking + lists.count < Self.most, !waiting.isEmpty { begin(waiting.removeFirst()) }
  }

  private func begin(_ list: FeedbackList) {
    asking += 1
    broker.countReady(list.queue) { [weak self] count in
      guard let self else { return }
      asking -= 1
      defer { goOn() }
      guard !list.isSettled else { return }
      guard let count else { return list.fail() }
      guard count > 0, list.reader != nil else { return list.end() }
      lists[ObjectIdentifier(list)] = list
      list.begin(
        count: count, connection: BrokerConnection(loop: loop, brokers: brokers),
        settings: { ConnectionSettings(broker: $0, name: "pushfleet gateway, \(ThisProcess.name), feedback service") }
      ) { [weak self] list in
        self?.figures.feedback += list.taken
        self?.lists[ObjectIdentifier(list)] = nil
        self?.goOn()
      }
    }
  }
}
