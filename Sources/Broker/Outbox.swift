import AMQP
import Logging
import Reactor
import Wire

/// Publishes each message that follows from a request until the broker confirms it. Only replies to a producer's queue may be dropped.
///
/// Holds at most what the requests in flight give rise to: above `highWater` the shard sends no further push. A message that
/// the broker refuses (a full feedback queue, a missing one) is offered again with growing pauses. A queue that takes nothing holds up
/// only what goes there.
package final class Outbox {
  /// Without what waits for queues that are stuck, and with it.
  package static let highWater = 4_096
  static let ceiling = 32_768
  /// What a connection is to take unconfirmed: the windows of several queues.
  package static let window = 16 * OutcomeQueue.window

  package weak var owner: (any OutboxOwner)?
  /// Hears of what follows from changes of the registry.
  package weak var changes: (any ChangeConsequences)?
  /// And of what follows from acknowledgements.
  package weak var acknowledgements: (any AcknowledgementConsequences)?
  /// Hears of feedback about devices that haven't registered for long.
  package weak var stale: (any StaleConsequences)?
  /// Ends the connection in use, and brings another by ``use(_:)``.
  package var renewConnection: (() -> Void)?
  private let time: Turn
  private let log: Log
  private var publisher: Publisher?
  private(set) var slots = Slab<Publication>()
  private var queues: [OutcomeQueue] = []
  private var names: [OutcomeQueue.Name: Int] = [:]
  /// Of the queues, those that have something to publish, in turn.
  private var ready = Ring<Int>()
  /// Of the backlog, what doesn't wait for a stuck queue.
  private var moving = 0
  /// Replies that were underway when the broker closed the channel or the connection for a cause. A producer chooses where a
  /// reply goes, so one of them is likely to be to blame: they go out one at a time, and the one that does it again is given up.
  private var suspects = Ring<Int>()
  private var suspect: Int?
  /// False where the user may not write to the default exchange.
  private var mayReply = true
  /// For what our own queues refuse.
  var renewal = Renewal()
  /// For what they neither take nor refuse.
  private var silenceRenewal = Renewal(pause: Backoff(base: 60, cap: 600))
  /// For replies that are given up to full queues. Nothing makes its pauses short again: a producer could have the worker connect anew
  /// all the time.
  var replyRenewal = Renewal()
  /// Nothing is handed over while what is on its way is waited for, so that no copies arise.
  private var isRenewing = false
  private var isPumping = false
  private var replyLines = LogThrottle()
  /// By slot, when what is in it was handed over last.
  private var publishedAt: [MonotonicTime] = []
  /// From a publication to the broker's confirm, in seconds.
  package static let confirmBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
  package private(set) var confirmTimes = Histogram(bounds: confirmBounds)
  package var backlog: Int { slots.count }

  package init(time: Turn, log: Log) {
    self.time = time
    self.log = log
  }

  package var isFull: Bool { moving >= Self.highWater || backlog >= Self.ceiling }
  /// What waits for queues that confirm nothing.
  package var stuck: Int { backlog - moving }
  /// Of that, what waits for hold queues, as ``look()`` found it last.
  package private(set) var stuckHolds = 0

  package func publish(_ publication: Publication) {
    var publication = publication
    let queue = queue(of: publication)
    publication.queue = queue
    queues[queue].backlog += 1
    if !queues[queue].isStuck { moving += 1 }
    wait(slots.insert(publication), for: queue)
    pump()
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

  /// To be called a few times a second: finds out which queues confirm nothing.
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
    guard isTaking else { return silenceRenewal.reset() }
    if longest == 0 { silenceRenewal.reset() } else if !isRenewing, silenceRenewal.refused(time) { renewLater() }
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

  /// The connection that publishes from now on; nil while there is none.
  package func use(_ publisher: Publisher?) {
    self.publisher = publisher
    for queue in queues.indices { queues[queue].startWaiting(at: time.now) }
    isRenewing = false
    mayReply = true
    pump()
  }

  /// Hands over as much as the connection takes; what is confirmed meanwhile doesn't begin it a second time.
  private func pump() {
    guard !isPumping else { return }
    isPumping = true
    defer { isPumping = false }
    while let publisher, !isRenewing, publisher.canPublish, let slot = nextSlot() { publish(slot, on: publisher) }
  }

  /// One of each queue in turn.
  private func nextSlot() -> Int? {
    while let queue = ready.popFirst() {
      queues[queue].isQueued = false
      guard queues[queue].canPublish, let slot = queues[queue].waiting.popFirst() else { continue }
      makeReady(queue)
      return slot
    }
    guard suspect == nil else { return nil }
    suspect = suspects.popFirst()
    return suspect
  }

  private func publish(_ slot: Int, on publisher: Publisher) {
    guard let message = slots[slot] else { return }
    if message.kind == .reply, !mayReply {
      // Who hands it over here isn't done yet with what follows from the request.
      time.schedule(after: 0) { [weak self] in
        self?.giveUpReply(slot, because: "the user may not write to the default exchange")
      }
      return
    }
    queues[message.queue].published(at: time.now)
    notePublished(slot)
    publisher.publish(
      exchange: message.exchange, routingKey: message.routingKey, properties: message.properties,
      body: owner?.body(of: message) ?? message.body, tag: slot)
  }

  private func notePublished(_ slot: Int) {
    while publishedAt.count <= slot { publishedAt.append(time.now) }
    publishedAt[slot] = time.now
  }

  private func ended(_ slot: Int) {
    guard let publication = slots[slot] else { return }
    let wasFull = isFull
    forget(slot, of: publication.queue)
    switch publication.owner {
    case .request: owner?.publicationConfirmed(publication)
    case .change(let number): changes?.consequenceConfirmed(number)
    case .acknowledgement(let number): acknowledgements?.publicationConfirmed(number)
    case .staleDevice(let device): stale?.fedBack(device)
    }
    if wasFull, !isFull { owner?.outboxDrained() }
  }

  private func forget(_ slot: Int, of queue: Int) {
    slots.remove(slot)
    queues[queue].backlog -= 1
    if !queues[queue].isStuck { moving -= 1 }
  }

  /// A producer's own queue that stays full, or is no place for a reply, must not hold up everybody else for ever.
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
    if suspect == slot { suspect = nil }
    replyReachedNobody(slot)
  }

  private func replyReachedNobody(_ slot: Int) {
    owner?.replyReachedNobody()
    // RabbitMQ returns every mandatory message to direct reply-to, whether it has reached its client or not.
    if let publication = slots[slot], case .change(let number) = publication.owner,
      !publication.routingKey.starts(with: Self.directReply)
    {
      changes?.answerReachedNobody(number)
    }
    ended(slot)
  }

  private static let directReply = Array("amq.rabbitmq.reply-to.".utf8)

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

  // MARK: another connection

  private func renewLater() {
    isRenewing = true
    time.schedule(after: Self.renewalTimeout) { [weak self] in self?.renew() }
    renewWhenAnswered()
  }

  /// Seconds for which confirms are waited for.
  private static let renewalTimeout = 2.0

  private func renewWhenAnswered() {
    guard isRenewing, queues.allSatisfy({ $0.isStuck || $0.unconfirmed == 0 }) else { return }
    time.schedule(after: 0) { [weak self] in self?.renew() }
  }

  private func renew() {
    guard isRenewing, publisher != nil else { return }
    log.warning("publications are still refused: tried again on another connection")
    // At once, whatever is left of their pauses: it may have been the channel that refused them.
    for queue in queues.indices { endRefusals(of: queue) }
    use(nil)
    renewConnection?()
  }

  // MARK: taken back

  /// Takes back, and returns, what follows from requests and has certainly not left.
  /// - Parameter isMeant: by the request's index.
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
      // What is left comes back in its order.
      var waiting = queues[queue].waiting
      var refused = queues[queue].refused
      waiting.removeAll(where: takeBack)
      refused.removeAll(where: takeBack)
      queues[queue].waiting = waiting
      queues[queue].refused = refused
    }
    return withdrawn
  }

  // MARK: what became of a publication

  package func confirmed(_ slot: Int) {
    if slot == suspect { suspect = nil }
    if publishedAt.indices.contains(slot) { confirmTimes.record(seconds: time.now.seconds(since: publishedAt[slot])) }
    if let queue = slots[slot]?.queue {
      queues[queue].confirmed(at: time.now)
      if queues[queue].refused.isEmpty, queues[queue].backlog < OutcomeQueue.window { catchUp(queue) }
      makeReady(queue)
    }
    if let publication = slots[slot], publication.refusals > 0, publication.kind != .reply {
      renewal.reset()
    }
    ended(slot)
    renewWhenAnswered()
    pump()
  }

  /// - Returns: true when a queue or exchange of ours is missing on the broker.
  package func failed(_ slot: Int, _ failure: PublishFailure) -> Bool {
    let wasSuspect = slot == suspect
    if wasSuspect { suspect = nil }
    if let queue = slots[slot]?.queue {
      queues[queue].failed()
      makeReady(queue)
    }
    switch failure {
    case .returned where slots[slot]?.kind == .reply:
      replyReachedNobody(slot)
    case .returned:
      offerAgainLater(slot, because: "no queue takes it")
      return true
    case .nacked where isHopelessReply(slot):
      if publisher != nil, !isRenewing, replyRenewal.refused(time) { renewLater() }
      giveUpReply(slot, because: "its queue stays full")
      renewWhenAnswered()
    case .nacked:
      if publisher != nil, !isRenewing, slots[slot]?.kind != .reply, renewal.refused(time) { renewLater() }
      offerAgainLater(slot, because: "the queue refuses it")
      renewWhenAnswered()
    case .unencodable:
      // Only a producer's own headers can outgrow a frame; the outcome goes without them. What is to be sent on keeps its sender,
      // which is one that the configuration names.
      let isSentOn = [.retry, .hold, .page].contains(slots[slot]?.kind)
      slots[slot]?.properties.dropForeignHeaders(keepingSender: isSentOn)
      let id = slots[slot]?.properties.messageID.map { String(decoding: $0, as: UTF8.self) } ?? "without an id"
      offerAgainLater(slot, because: "the headers of the message \(id) outgrow a frame: it goes without its producer's")
    case .channelClosed(let reason) where slots[slot]?.kind == .reply:
      if case .accessRefused = reason, wasSuspect { mayReply = false }
      if wasSuspect { giveUpReply(slot, because: "\(reason)") } else { suspects.append(slot) }
    case .channelClosed(let reason):
      slots[slot]?.mayHaveArrived = true
      offerAgainLater(slot, because: "\(reason)")
      if case .notFound = reason { return true }
    case .connectionLost, .timedOut:
      // Consumers recognise a duplicate by its message id.
      slots[slot]?.mayHaveArrived = true
      if let queue = slots[slot]?.queue { wait(slot, for: queue) }
    }
    pump()
    return false
  }
}

extension BasicProperties {
  fileprivate mutating func dropForeignHeaders(keepingSender: Bool) {
    headers = headers.removing {
      !$0.starts(with: "x-push-".utf8) || (!keepingSender && MessageHeaders.choices.contains($0))
    }
  }
}
