import AMQP
import Reactor
import Wire

/// Publishes what follows from requests until the broker has confirmed it; nothing is given up, nothing is counted twice.
///
/// Holds at most what the requests in flight give rise to: above `highWater` the shard sends no further push. A message that
/// the broker refuses (a full feedback queue, a missing one) is offered again with growing pauses.
final class Outbox {
  static let highWater = 4_096

  weak var owner: (any OutboxOwner)?
  private let loop: EventLoop
  private let log: Log
  private var publisher: Publisher?
  private var slots: [Publication?] = []
  private var free: [Int] = []
  private var waiting = Ring<Int>()
  private var refused: [Int] = []
  private var isRetryScheduled = false
  private var pause = Backoff(base: 1, cap: 30)
  private(set) var backlog = 0

  init(loop: EventLoop, log: Log) {
    self.loop = loop
    self.log = log
  }

  var isFull: Bool { backlog >= Self.highWater }

  func publish(_ publication: Publication) {
    backlog += 1
    let slot: Int
    if let free = free.popLast() {
      slot = free
      slots[slot] = publication
    } else {
      slot = slots.count
      slots.append(publication)
    }
    waiting.append(slot)
    pump()
  }

  /// The connection that publishes from now on; nil while there is none.
  func use(_ publisher: Publisher?) {
    self.publisher = publisher
    pump()
  }

  private func pump() {
    guard let publisher else { return }
    while publisher.canPublish, let slot = waiting.popFirst() {
      guard let message = slots[slot] else { continue }
      publisher.publish(
        exchange: message.exchange, routingKey: message.routingKey, properties: message.properties, body: message.body,
        tag: slot)
    }
  }

  private func settle(_ slot: Int) {
    guard let publication = slots[slot] else { return }
    slots[slot] = nil
    free.append(slot)
    let wasFull = isFull
    backlog -= 1
    owner?.publicationConfirmed(publication.kind, owner: publication.owner)
    if wasFull, !isFull { owner?.outboxDrained() }
  }

  private func offerAgainLater(_ slot: Int, because reason: String) {
    refused.append(slot)
    guard !isRetryScheduled, let publication = slots[slot] else { return }
    isRetryScheduled = true
    let seconds = pause.next()
    log.warning(
      "the broker refuses publications",
      [
        "exchange": String(decoding: publication.exchange, as: UTF8.self), "reason": reason,
        "again_in_seconds": "\(Int(seconds))",
      ])
    loop.schedule(after: seconds) { [weak self] in self?.offerAgain() }
  }

  private func offerAgain() {
    isRetryScheduled = false
    for slot in refused { waiting.append(slot) }
    refused.removeAll(keepingCapacity: true)
    pump()
  }

  // MARK: what became of a publication

  func confirmed(_ slot: Int) {
    pause.reset()
    settle(slot)
    pump()
  }

  /// - Returns: true when a queue or exchange of ours is missing on the broker.
  func failed(_ slot: Int, _ failure: PublishFailure) -> Bool {
    switch failure {
    case .returned where slots[slot]?.kind == .reply:
      owner?.replyReachedNobody()
      settle(slot)
    case .returned:
      offerAgainLater(slot, because: "no queue takes it")
      return true
    case .nacked: offerAgainLater(slot, because: "the queue refuses it")
    case .unencodable:
      // Only a producer's own headers can outgrow a frame; the outcome goes without them.
      slots[slot]?.properties.dropForeignHeaders()
      offerAgainLater(slot, because: "its headers outgrow a frame")
    case .channelClosed(let reason):
      offerAgainLater(slot, because: "\(reason)")
      if case .notFound = reason { return true }
    case .connectionLost, .timedOut:
      // It may have arrived: consumers tell a duplicate by its message id.
      waiting.append(slot)
    }
    return false
  }
}

extension BasicProperties {
  fileprivate mutating func dropForeignHeaders() {
    headers = headers.removing { !$0.starts(with: "x-push-".utf8) || $0.elementsEqual("x-push-sender".utf8) }
  }
}
