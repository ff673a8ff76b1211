import AMQP
import Broker
import Reactor
import Settings
import Wire

/// Gives connections of the feedback service the lists of their applications.
final class FeedbackService {
  /// Lists read at the same time. Each needs a connection to the broker.
  static let most = 16

  private let context: GatewayContext
  private var lists: [ObjectIdentifier: FeedbackList] = [:]
  private var waiting: [FeedbackList] = []
  /// Lists that wait for the length of their queue.
  private var asking = 0
  private let listsBadTokens: Bool

  init(_ context: GatewayContext, listsBadTokens: Bool) {
    self.context = context
    self.listsBadTokens = listsBadTokens
  }

  var isIdle: Bool { lists.isEmpty }

  /// Ends the connections that wait for a list.
  func drain() {
    for list in waiting { list.fail() }
    waiting = []
  }

  func open(_ app: [UInt8], _ reader: any FeedbackReader) -> FeedbackConnection.Settle {
    let list = FeedbackList(
      queue: context.topology.binaryFeedbackQueue(String(decoding: app, as: UTF8.self)), listsBadTokens: listsBadTokens,
      time: context.loop.time, reader: reader)
    waiting.append(list)
    context.loop.schedule(after: 0) { [weak self] in self?.goOn() }
    return list.settle
  }

  private func goOn() {
    waiting.removeAll(where: \.isSettled)
    while asking + lists.count < Self.most, !waiting.isEmpty { begin(waiting.removeFirst()) }
  }

  private func begin(_ list: FeedbackList) {
    asking += 1
    context.broker.countReady(list.queue) { [weak self] count in
      guard let self else { return }
      asking -= 1
      defer { goOn() }
      guard !list.isSettled else { return }
      guard let count else { return list.fail() }
      guard count > 0, list.reader != nil else { return list.end() }
      lists[ObjectIdentifier(list)] = list
      let connection = BrokerConnection(
        loop: context.loop, brokers: context.broker.brokers,
        name: "pushfleet gateway, \(ThisProcess.name), feedback service")
      list.begin(count: count, connection: connection) { [weak self] list in
        guard let self else { return }
        context.figures.binary.feedback += list.taken
        lists[ObjectIdentifier(list)] = nil
        goOn()
      }
    }
  }
}
