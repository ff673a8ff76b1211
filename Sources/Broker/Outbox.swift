import AMQP
import Logging
import Reactor
import Wire

/// Publishes each message that follows from a request until the broker confirms it. Only replies to a producer's queue may be
/// dropped. The requests in flight limit its size: above `highWater` the shard sends no further pushes. A refused message (full
/// or missing queue) is published again with growing pauses. A queue that accepts nothing delays only its own messages.
package final class Outbox {
  /// The backlog limits without and with messages for stuck queues.
  package static let highWater = 4_096
  static let ceiling = 32_768
  /// Maximum unconfirmed publishes on a connection: the windows of several queues.
  package static let window = 16 * OutcomeQueue.window

  package weak var owner: (any OutboxOwner)?
  /// Ends the current connection. A new one follows with ``use(_:)``.
  package var renewConnection: (() -> Void)?
  private let time: Turn
  private let log: Log
  private var publisher: Publisher?
  private(set) var slots = Slab<Publication>()
  private var queues: [OutcomeQueue] = []
  private var names: [OutcomeQueue.Name: Int] = [:]
  /// Indexes of queues that have something to publish, in turn.
  private var ready = Ring<Int>()
  /// Backlog without messages for stuck queues.
  private var moving = 0
  private var suspects = ReplySuspects()
  /// False if the user may not write to the default exchange.
  private var mayReply = true
  /// For refusals by the fleet's own queues.
  var reconnectPolicy = ReconnectPolicy()
  /// For queues that neither confirm nor refuse.
  private var silenceReconnectPolicy = ReconnectPolicy(pause: Backoff(base: 60, cap: 600))
  /// For replies that are dropped because of full queues. Never reset; otherwise a producer could cause constant reconnects.
  var replyReconnectPolicy = ReconnectPolicy()
  /// While true, nothing is published and outstanding confirms are awaited, so that no duplicates arise.
  private var isRenewing = false
  private var isPumping = false
  private var replyLines = Throttle<[UInt8]>(seconds: 60, most: 1_000)
  /// Bounds of the time from publish to confirm, in seconds.
  package static let confirmBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
  package private(set) var confirmTimes = Histogram(bounds: confirmBounds)
  package var backlog: Int { slots.count }

  package init(time: Turn, log: Log) {
    self.time = time
    self.log = log
  }

  package var isFull: Bool { moving >= Self.highWater || backlog >= Self.ceiling }
  /// Number of messages for queues that confirm nothing.
  package var stuck: Int { backlog - moving }
  /// The part of `stuck` for hold queues, as of the last ``look()``.
  package private(set) var stuckHolds = 0

  package func publish(_ publication: Publication) {
    let queue = queue(of: publication)
    publication.queue = queue
    queues[queue].backlog += 1
    if !queues[queue].isStuck { moving += 1 }
    enqueue(slots.insert(publication))
    pump()
  }

  private func enqueue(_ slot: Int) {
    guard let publication = slots[slot] else { return }
    if suspects.standing(of: publication, at: time.now) == .unknown {
      suspects.waiting.append(slot)
    } else {
      wait(slot, for: publication.queue)
    }
  }

  private func queue(of publication: Publication) -> Int {
    let name = publication.queueName
    if let queue = names[name] { return queue }
    queues.append(OutcomeQueue(name))
    names[name] = queues.count - 1
    return queues.count - 1
  }

  private func wait(_ slot: Int, for queue: Int) {
    queues[queue].waiting.append(slot)
    makeReady(queue)
  }

  private func makeReady(_ queue: Int) {
    guard queues[queue].canPublish, !queues[queue].isQueued else { return }
    queues[queue].isQueued = true
    ready.append(queue)
  }

  /// Finds queues that confirm nothing. Call it a few times a second.
  package func look() {
    let now = time.now
    let isTaking = publisher.map { !$0.isBlocked } ?? false
    var longest = 0.0
    for queue in queues.indices {
      let silence = queues[queue].silence(at: now)
      let isSilent = silence > OutcomeQueue.longestSilence
      if isSilent { longest = max(longest, silence) }
      if queues[queue].backlog == 0 {
        catchUp(queue)
      } else if !isTaking {
        setStuck(queue, false)
      } else if isSilent || queues[queue].wasStuck || !queues[queue].refused.isEmpty {
        setStuck(queue, true)
      }
    }
    stuckHolds = queues.reduce(0) { $1.isStuck && $1.name.kind == .hold ? $0 + $1.backlog : $0 }
    guard isTaking else { return silenceReconnectPolicy.reset() }
    if longest == 0 {
      silenceReconnectPolicy.reset()
    } else if !isRenewing, silenceReconnectPolicy.refused(time) {
      renewLater()
    }
  }

  private func catchUp(_ queue: Int) {
    queues[queue].wasStuck = false
    setStuck(queue, false)
  }

  private func setStuck(_ queue: Int, _ isStuck: Bool) {
    if isStuck { queues[queue].wasStuck = true }
    guard queues[queue].isStuck != isStuck else { return }
    queues[queue].isStuck = isStuck
    let wasFull = isFull
    moving += isStuck ? -queues[queue].backlog : queues[queue].backlog
    if wasFull, !isFull { owner?.outboxDrained() }
  }

  package func use(_ publisher: Publisher?) {
    // The same connection opens a channel again after a refused publication.
    if publisher !== self.publisher { mayReply = true }
    self.publisher = publisher
    for queue in queues.indices { queues[queue].startWaiting(at: time.now) }
    isRenewing = false
    pump()
  }

  /// Publishes as much as the connection accepts. Confirms that arrive meanwhile don't start a second run.
  private func pump() {
    guard !isPumping else { return }
    isPumping = true
    defer { isPumping = false }
    while let publisher, !isRenewing, publisher.canPublish, let slot = nextSlot() { publish(slot, on: publisher) }
  }

  /// Takes a suspect if none is in flight, and otherwise one message of each queue in turn.
  private func nextSlot() -> Int? {
    while suspects.inFlight == nil, let slot = suspects.waiting.popFirst() {
      guard let reply = slots[slot] else { continue }
      if ReplySuspects.isDirect(reply), suspects.standing(of: reply, at: time.now) != .unknown {
        wait(slot, for: reply.queue)
      } else {
        suspects.inFlight = slot
        return slot
      }
    }
    while let queue = ready.popFirst() {
      queues[queue].isQueued = false
      guard queues[queue].canPublish, let slot = queues[queue].waiting.popFirst() else { continue }
      makeReady(queue)
      return slot
    }
    return nil
  }

  private func publish(_ slot: Int, on publisher: Publisher) {
    guard let message = slots[slot] else { return }
    let standing = suspects.standing(of: message, at: time.now)
    if standing == .unknown, slot != suspects.inFlight { return suspects.waiting.append(slot) }
    if message.kind == .reply, let reason = refusal(standing) {
      // Deferred, because the caller still processes the request.
      time.schedule(after: 0) { [weak self] in
        self?.giveUpReply(slot, because: reason)
        self?.pump()
      }
      return
    }
    queues[message.queue].published(at: time.now)
    message.publishedAt = time.now
    publisher.publish(
      exchange: message.exchange, routingKey: message.routingKey, properties: message.properties,
      body: owner?.body(of: message) ?? message.body, tag: slot)
  }

  /// Why a reply is given up; nil if it is published.
  private func refusal(_ standing: ReplySuspects.Standing) -> String? {
    guard mayReply else { return "the user may not write to the default exchange" }
    return standing == .refused ? "the broker ended the connection because of a reply to this client's node" : nil
  }

  private func ended(_ slot: Int) {
    guard let publication = slots[slot] else { return }
    let wasFull = isFull
    forget(slot, of: publication.queue)
    switch publication.owner {
    case .request: owner?.publicationConfirmed(publication)
    case .item(let number, let item): item.owner?.publicationConfirmed(number)
    }
    if wasFull, !isFull { owner?.outboxDrained() }
  }

  private func forget(_ slot: Int, of queue: Int) {
    slots.remove(slot)
    queues[queue].backlog -= 1
    if !queues[queue].isStuck { moving -= 1 }
  }

  /// Refusals after which a reply is dropped. A producer's queue that is full or invalid must not delay everything else.
  private static let replyRefusals = 5

  private func isHopelessReply(_ slot: Int) -> Bool {
    guard let publication = slots[slot], publication.kind == .reply else { return false }
    return publication.refusals + 1 >= Self.replyRefusals
  }

  private func giveUpReply(_ slot: Int, because reason: String) {
    if let queue = slots[slot]?.routingKey, let omitted = replyLines.admit(queue, at: time.now) {
      log.warning(
        "a reply is given up",
        ["queue": String(decoding: queue, as: UTF8.self), "reason": reason, "lines_left_out": omitted])
    }
    if suspects.inFlight == slot { suspects.inFlight = nil }
    replyReachedNobody(slot)
  }

  private func replyReachedNobody(_ slot: Int) {
    owner?.replyReachedNobody()
    // RabbitMQ returns every mandatory message to direct reply-to, whether it has reached the client or not.
    if let publication = slots[slot], case .item(let number, let item) = publication.owner,
      !ReplySuspects.isDirect(publication)
    {
      item.owner?.answerReachedNobody(number)
    }
    ended(slot)
  }

  private func offerAgainLater(_ slot: Int, because reason: String) {
    slots[slot]?.refusals += 1
    guard let publication = slots[slot] else { return }
    let queue = publication.queue
    queues[queue].refused.append(slot)
    guard !queues[queue].isPauseScheduled else { return }
    queues[queue].isPauseScheduled = true
    let seconds = queues[queue].pause.next(using: &time.random)
    log.warning(
      "the broker refuses publications",
      [
        "exchange": String(decoding: publication.exchange, as: UTF8.self), "reason": reason,
        "again_in_seconds": seconds,
      ])
    time.schedule(after: seconds) { [weak self] in self?.offerAgain(queue) }
  }

  private func offerAgain(_ queue: Int) {
    queues[queue].isPauseScheduled = false
    endRefusals(of: queue)
    pump()
  }

  private func endRefusals(of queue: Int) {
    for slot in queues[queue].refused { queues[queue].waiting.append(slot) }
    queues[queue].refused.removeAll(keepingCapacity: true)
    makeReady(queue)
  }

  // MARK: - Renewing the connection

  private func renewLater() {
    isRenewing = true
    time.schedule(after: Self.renewalTimeout) { [weak self, weak former = publisher] in
      if let self, former === publisher { renew() }
    }
    renewWhenAnswered()
  }

  /// Seconds to wait for outstanding confirms.
  private static let renewalTimeout = 2.0

  private func renewWhenAnswered() {
    guard isRenewing, queues.allSatisfy({ $0.isStuck || $0.unconfirmed == 0 }) else { return }
    time.schedule(after: 0) { [weak self] in self?.renew() }
  }

  private func renew() {
    guard isRenewing, publisher != nil else { return }
    log.warning("publications are still refused: reconnecting to try again")
    // Publish at once, without the remaining pauses: the channel may have been the cause of the refusals.
    for queue in queues.indices { endRefusals(of: queue) }
    use(nil)
    renewConnection?()
  }

  // MARK: - Withdrawing publications

  /// Removes and returns publications of requests that certainly haven't been sent.
  /// - Parameter isMeant: called with the request's index.
  package func withdraw(_ kind: Publication.Kind, where isMeant: (Int) -> Bool) -> [Publication] {
    var withdrawn: [Publication] = []
    func takeBack(_ slot: Int) -> Bool {
      guard let publication = slots[slot], publication.kind == kind, !publication.mayHaveArrived,
        case .request(let index) = publication.owner, isMeant(index)
      else { return false }
      forget(slot, of: publication.queue)
      withdrawn.append(publication)
      return true
    }
    for queue in queues.indices where queues[queue].name.kind == kind {
      // The remaining messages keep their order.
      var waiting = queues[queue].waiting
      var refused = queues[queue].refused
      waiting.removeAll(where: takeBack)
      refused.removeAll(where: takeBack)
      queues[queue].waiting = waiting
      queues[queue].refused = refused
    }
    return withdrawn
  }

  // MARK: - Outcomes of publications

  package func confirmed(_ slot: Int) {
    if slot == suspects.inFlight { suspects.inFlight = nil }
    if let publication = slots[slot] {
      suspects.processed(publication)
      let queue = publication.queue
      confirmTimes.record(seconds: time.now.seconds(since: publication.publishedAt))
      queues[queue].confirmed(at: time.now)
      if queues[queue].refused.isEmpty, queues[queue].backlog < OutcomeQueue.window { catchUp(queue) }
      makeReady(queue)
      if publication.refusals > 0, publication.kind != .reply { reconnectPolicy.reset() }
    }
    ended(slot)
    renewWhenAnswered()
    pump()
  }

  /// - Returns: true if a queue or exchange of the fleet is missing on the broker.
  package func failed(_ slot: Int, _ failure: PublishFailure) -> Bool {
    let wasSuspect = slot == suspects.inFlight
    if wasSuspect { suspects.inFlight = nil }
    if let queue = slots[slot]?.queue {
      queues[queue].failed()
      makeReady(queue)
    }
    switch failure {
    case .returned where slots[slot]?.kind == .reply:
      if let reply = slots[slot] { suspects.processed(reply) }
      replyReachedNobody(slot)
    case .returned where slots[slot]?.kind == .audit: ended(slot)
    case .returned:
      offerAgainLater(slot, because: "no queue takes it")
      return true
    case .nacked where isHopelessReply(slot):
      if publisher != nil, !isRenewing, replyReconnectPolicy.refused(time) { renewLater() }
      giveUpReply(slot, because: "its queue stays full")
      renewWhenAnswered()
    case .nacked:
      if publisher != nil, !isRenewing, slots[slot]?.kind != .reply, reconnectPolicy.refused(time) { renewLater() }
      offerAgainLater(slot, because: "the queue refuses it")
      renewWhenAnswered()
    case .unencodable:
      // Only a producer's headers can exceed a frame. A republished request keeps its sender, which the configuration names.
      let isSentOn = [.retry, .hold, .page].contains(slots[slot]?.kind)
      if let properties = slots[slot]?.properties {
        slots[slot]?.properties.headers = MessageHeaders.withoutProducers(properties.headers, keepsChoices: isSentOn)
      }
      let id = slots[slot]?.properties.messageID.map { String(decoding: $0, as: UTF8.self) } ?? "without an id"
      offerAgainLater(slot, because: "the headers of the message \(id) exceed a frame: sent without the producer's headers")
    case .channelClosed(let reason) where reason.isFailedCommand: publishAgain(slot)
    case .channelClosed(let reason) where slots[slot]?.kind == .reply:
      replyFailed(slot, reason, wasSuspect: wasSuspect)
    case .connectionLost, .timedOut: publishAgain(slot)
    case .channelClosed(let reason) where reason.isCrash: publishAgain(slot)
    case .channelClosed(let reason):
      slots[slot]?.mayHaveArrived = true
      offerAgainLater(slot, because: "\(reason)")
      if case .notFound = reason { return true }
    }
    pump()
    return false
  }

  /// Consumers recognise a duplicate by its message id.
  private func publishAgain(_ slot: Int) {
    slots[slot]?.mayHaveArrived = true
    enqueue(slot)
  }

  private func replyFailed(_ slot: Int, _ reason: ConnectionEnd, wasSuspect: Bool) {
    guard let reply = slots[slot] else { return }
    defer { reply.mayHaveArrived = true }
    if wasSuspect, reply.mayHaveArrived || reason.isCrash {
      if case .accessRefused = reason { mayReply = false }
      suspects.endedConnection(reply, at: time.now)
      giveUpReply(slot, because: "\(reason)")
    } else if reason.isCrash, suspects.inFlight != nil || suspects.causeFoundAt == time.now {
      publishAgain(slot)
    } else {
      suspects.doubt(reply)
      suspects.waiting.append(slot)
    }
  }
}
