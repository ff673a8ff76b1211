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
  private(set) var slots: [Publication?] = []
  private var free: [Int] = []
  private var waiting = Ring<Int>()
  private var refused: [Int] = []
  /// Replies that were underway when the broker closed the channel or the connection for a cause. A producer chooses where a
  /// reply goes, so one of them is likely to be to blame: they go out one at a time, and the one that does it again is given up.
  private var suspects = Ring<Int>()
  private var suspect: Int?
  /// False where the user may not write to the default exchange.
  private var mayReply = true
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
    mayReply = true
    pump()
  }

  private func pump() {
    guard let publisher else { return }
    while publisher.canPublish, let slot = waiting.popFirst() { publish(slot, on: publisher) }
    while suspect == nil, publisher.canPublish, let slot = suspects.popFirst() {
      suspect = slot
      publish(slot, on: publisher)
    }
  }

  private func publish(_ slot: Int, on publisher: Publisher) {
    guard let message = slots[slot] else { return }
    if message.kind == .reply, !mayReply { return giveUpReply(slot, because: "the user may not write to the default exchange") }
    publisher.publish(
      exchange: message.exchange, routingKey: message.routingKey, properties: message.properties, body: message.body, tag: slot)
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

  /// A producer's own queue that stays full, or is no place for a reply, must not hold up everybody else for ever.
  private static let replyRefusals = 5

  private func isHopelessReply(_ slot: Int) -> Bool {
    guard let publication = slots[slot], publication.kind == .reply else { return false }
    return publication.refusals + 1 >= Self.replyRefusals
  }

  private func giveUpReply(_ slot: Int, because reason: String) {
    log.warning("a reply is given up", ["reason": reason])
    if suspect == slot { suspect = nil }
    owner?.replyReachedNobody()
    settle(slot)
  }

  private func offerAgainLater(_ slot: Int, because reason: String) {
    refused.append(slot)
    slots[slot]?.refusals += 1
    guard !isRetryScheduled, let publication = slots[slot] else { return }
    isRetryScheduled = true
    let seconds = pause.next()
    log.warning(
      "the broker refuses publications",
      [
        "exchange": String(decoding: publication.exchange, as: UTF8.self), "reason": reason,
        "again_in_seconds": seconds,
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
    if slot == suspect { suspect = nil }
    pause.reset()
    settle(slot)
    pump()
  }

  /// - Returns: true when a queue or exchange of ours is missing on the broker.
  func failed(_ slot: Int, _ failure: PublishFailure) -> Bool {
    let wasSuspect = slot == suspect
    if wasSuspect { suspect = nil }
    switch failure {
    case .returned where slots[slot]?.kind == .reply:
      owner?.replyReachedNobody()
      settle(slot)
    case .returned:
      offerAgainLater(slot, because: "no queue takes it")
      return true
    case .nacked where isHopelessReply(slot): giveUpReply(slot, because: "its queue stays full")
    case .nacked: offerAgainLater(slot, because: "the queue refuses it")
    case .unencodable:
      // Only a producer's own headers can outgrow a frame; the outcome goes without them.
      slots[slot]?.properties.dropForeignHeaders()
      offerAgainLater(slot, because: "its headers outgrow a frame")
    case .channelClosed(let reason) where slots[slot]?.kind == .reply:
      if case .accessRefused = reason, wasSuspect { mayReply = false }
      if wasSuspect { giveUpReply(slot, because: "\(reason)") } else { suspects.append(slot) }
    case .channelClosed(let reason):
      offerAgainLater(slot, because: "\(reason)")
      if case .notFound = reason { return true }
    case .connectionLost, .timedOut:
      // It may have arrived: consumers tell a duplicate by its message id.
      waiting.append(slot)
    }
    if wasSuspect { pump() }
    return false
  }
}

extension BasicProperties {
  fileprivate mutating func dropForeignHeaders() {
    headers = headers.removing { !$0.starts(with: "x-push-".utf8) || $0.elementsEqual("x-push-sender".utf8) }
  }
}
