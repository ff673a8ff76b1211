import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Wire

/// Applies changes that come by the registry's queue, in the order of their arrival. The answer goes to the sender's reply
/// queue; without one, a refused change becomes a dead letter. Confined to the shard's thread. A change is kept until the
/// registry has stored it, and later changes wait behind it: after a failure, the next one is submitted only when all submitted
/// changes have been answered.
package final class ChangeQueue: ChangeFeedHandler, ConsequenceOwner {
  struct Change {
    var delivery: Delivery
    let messageID: [UInt8]
    var app: [UInt8] = []
    /// The user whose rights are to be checked; nil after the check. See ``NoteReader/producer(of:)``.
    var producer: [UInt8]?
    var reply = ReplyQueues.Verdict.allowed
    /// The reason in the answer if the change was refused.
    var refusal: ChangeRefusal?
    /// The change for the registry; nil once there is an answer.
    var content: RegistryChange?
    /// The connection is gone: the answer is still published, but the change can't be acknowledged.
    var isLost = false
    var owed = 0
    /// The broker has confirmed the answer; the change waits for the acknowledgement of earlier ones.
    var isAnswered = false
  }

  package weak var feed: (any ChangeSource)? { didSet { claim.source = feed } }
  package private(set) var counters = Counters()
  private let tools: ShardTools
  private let limits: RegistryLimits
  private let noteReader: NoteReader
  private let replyQueues: ReplyQueues
  package let letters: QueueLetterLog

  private var changes: [Int: Change] = [:]
  private var nextNumber = 0
  /// Changes whose reply queue is being checked, and changes behind them, in the order of arrival.
  private var undecided = Ring<Int>()
  /// All changes with lower numbers are acknowledged or lost.
  private var oldest = 0
  /// Changes to submit to the registry, in the order of arrival.
  private(set) var waiting = Ring<Int>()
  private(set) var asked = 0
  /// A change has failed while others were under way: nothing is submitted before they are answered.
  private var isPaused = false
  private let claim: ChangeClaim
  /// The time of the first failed change since the last success; nil while the registry accepts changes.
  var stuckSince: MonotonicTime?

  /// Without a registry, no changes arrive.
  package init(_ tools: ShardTools, limits: RegistryLimits, replyQueues: ReplyQueues) {
    self.tools = tools
    self.replyQueues = replyQueues
    noteReader = NoteReader(prefix: tools.publications.prefix)
    claim = ChangeClaim(tools.registry)
    self.limits = limits
    letters = QueueLetterLog(queue: Topology.registryOrigin, log: tools.log)
    claim.onStep = { [weak self] isProven in self?.claimed(isProven) }
    tools.registry?.watchers.append { [weak self] in self?.registryChanged(isUsable: $0) }
  }

  package var count: Int { changes.count }

  package func registryChangeDelivered(_ delivery: Delivery) {
    counters.received += 1
    if delivery.redelivered { counters.redelivered += 1 }
    let number = nextNumber
    nextNumber += 1
    let messageID = delivery.properties.messageID ?? UUIDText.random(using: &tools.time.random)
    let producer = noteReader.producer(of: delivery)
    changes[number] = Change(delivery: delivery, messageID: messageID, producer: producer)
    undecided.append(number)
    decideReplies()
  }

  /// Continues with the changes whose reply queues are decided. Call it when the broker has answered about a reply queue, and
  /// about once a second.
  package func decideReplies() {
    while let number = undecided.first {
      if let change = changes[number] {
        let verdict = change.producer.map { replyQueues.verdict(on: change.delivery.properties.replyTo, of: $0) } ?? .allowed
        guard verdict != .unknown, verdict != .crowded else { return }
        changes[number]?.reply = verdict
      }
      _ = undecided.popFirst()
      read(number)
    }
  }

  private func read(_ number: Int) {
    guard let change = changes[number] else { return }
    guard change.reply != .refused else {
      return conclude(number, .refused(.notAllowed, reason: "reply_to: not a queue that answers may go to"))
    }
    let delivery = change.delivery
    if let reason = NoteReader.refusal(of: delivery.properties) {
      return conclude(number, .refused(.invalidParameters, reason: reason))
    }
    let named = delivery.properties.appID.flatMap { $0.isEmpty ? nil : $0 }
    let defaultApp = named ?? tools.apps.only.map { tools.apps[$0].id }
    let parsed = RegistryChange.parse(delivery.body, size: delivery.bodySize, defaultApp: defaultApp, limits: limits)
    switch parsed.flatMap({ $0.following(subscriptionRules) }) {
    case .failure(let refusal): conclude(number, refusal.answer)
    case .success(let content):
      if let producer = change.producer, let app = tools.apps.index(of: content.app),
        let refusal = tools.apps[app].rights.refusal(of: producer)
      {
        return conclude(number, .refused(.notAllowed, reason: refusal.reason))
      }
      changes[number]?.producer = nil
      changes[number]?.app = content.app
      changes[number]?.content = delivery.redelivered ? content.asRepeated : content
      waiting.append(number)
      apply()
    }
  }

  /// The rules of the sender's web push, or of the application's.
  private func subscriptionRules(_ app: [UInt8], _ sender: [UInt8]?) -> SubscriptionRules? {
    guard let app = tools.apps.index(of: app) else { return nil }
    return (sender.flatMap { tools.apps[app].senders[$0] } ?? tools.apps[app].routes).webpush?.rules
  }

  /// Submits waiting changes. Call it about once a second too, for those that the registry couldn't accept on arrival.
  package func apply() {
    if isPaused {
      guard asked == 0 else { return }
      isPaused = false
    }
    guard !waiting.isEmpty, let fence = claim.number() else { return }
    while let number = waiting.popFirst() {
      guard let content = changes[number]?.content else { continue }
      asked += 1
      tools.registry?.call(.apply(content, fence: fence)) { [weak self] result in self?.answered(number, result) }
      // The registry refused it at once, and it is the first in line again.
      if waiting.first == number { return }
    }
  }

  private func claimed(_ isProven: Bool) {
    if isProven { apply() } else if stuckSince == nil { stuckSince = tools.time.now }
  }

  private func answered(_ number: Int, _ result: Result<ChangeAnswer, RegistryError>) {
    asked -= 1
    switch result {
    case .success(let answer):
      stuckSince = nil
      conclude(number, answer)
      if isPaused { apply() }
    case .failure(let error):
      if asked > 0 { isPaused = true }
      guard changes[number] != nil else { return }
      if case .refused = error { return conclude(number, .refused(.invalidParameters, reason: "\(error)")) }
      // A fenced change says nothing about the registry's health.
      if error == .fenced { claim.end() } else if stuckSince == nil, !claim.isEnded { stuckSince = tools.time.now }
      // The registry may have applied it all the same.
      let content = changes[number]?.content
      changes[number]?.content = content?.asRepeated
      // The queue keeps the order of arrival.
      waiting.insert(number, before: { $0 > number })
      if asked == 0, claim.isEnded { apply() }
    }
  }

  // MARK: the answer

  private func conclude(_ number: Int, _ answer: ChangeAnswer) {
    guard let change = changes[number] else { return }
    changes[number]?.content = nil
    let owner = Publication.Owner.item(number, of: self)
    var following: [Publication] = []
    if case .moved(let registration, let replaced) = answer {
      counters.feedback += replaced.count
      for token in replaced {
        let event = moved(change, registration, token)
        following.append(tools.publications.feedback(event, from: change.delivery.properties, owner))
      }
    }
    if let reply = tools.publications.reply(answer.json, to: change, owner) {
      following.append(reply)
      changes[number]?.refusal = answer.failure
    } else if let failure = answer.failure {
      following.append(deadLetter(failure, change, number))
    }
    guard !following.isEmpty else { return acknowledge(number) }
    changes[number]?.owed = following.count
    for publication in following { tools.outbox.publish(publication) }
  }

  private func deadLetter(_ failure: ChangeRefusal, _ change: Change, _ number: Int) -> Publication {
    let letter = letters.letter(failure, failedAt: tools.time.wallClock)
    counters.deadLetters += 1
    counters.pushes.add(.deadLetter(letter.error), tools.apps.series.number(of: tools.apps.place(of: change.app)), nil, .normal)
    return tools.publications.deadLetter(letter, for: change, .item(number, of: self))
  }

  /// The answer was unroutable: a refused change becomes a dead letter.
  package func answerReachedNobody(_ number: Int) {
    guard let change = changes[number], let refusal = change.refusal else { return }
    changes[number]?.refusal = nil
    changes[number]?.owed += 1
    tools.outbox.publish(deadLetter(refusal, change, number))
  }

  private func moved(_ change: Change, _ registration: [UInt8], _ replaced: ReplacedToken) -> FeedbackEvent {
    FeedbackEvent(
      event: .moved, app: change.app, platform: replaced.platform, token: replaced.token, newToken: replaced.newToken,
      registration: registration, reason: "the installation has registered another token", status: 0,
      messageID: change.messageID, observedAt: tools.time.wallClock,
      details: .init(
        environment: replaced.environment.name, sender: replaced.sender, installation: replaced.installation,
        user: replaced.user, kind: replaced.kind.name))
  }

  /// The broker has confirmed the reply, the dead letter or a feedback message of the change.
  package func publicationConfirmed(_ number: Int) {
    changes[number]?.owed -= 1
    if changes[number]?.owed == 0 { acknowledge(number) }
  }

  /// Acknowledges changes in the order of arrival. The broker then delivers a change again only together with all later ones;
  /// alone, it would undo a later change of its device.
  private func acknowledge(_ number: Int) {
    changes[number]?.isAnswered = true
    if changes[number]?.isLost == true { changes[number] = nil }
    while oldest < nextNumber {
      if let change = changes[oldest], !change.isLost {
        guard change.isAnswered else { return }
        feed?.acknowledge(change.delivery)
        counters.acknowledged += 1
        changes[oldest] = nil
      }
      oldest += 1
    }
  }

  // MARK: failures

  private func registryChanged(isUsable: Bool) {
    feed?.registryChanged(isUsable: isUsable)
    if isUsable { apply() }
  }

  /// The connection is gone. Changes that the registry hasn't begun are dropped: the next consumer applies them in order.
  package func registryChangesLost() {
    waiting = Ring()
    while let number = undecided.popFirst() { changes[number] = nil }
    tools.registry?.withdrawChanges()
    claim.end()
    stuckSince = nil
    changes = changes.filter { $0.value.content == nil }
    for number in changes.keys { changes[number]?.isLost = true }
  }

  /// To be called about once a second.
  package func giveBackStuck() {
    guard let since = stuckSince, asked == 0, let oldest = waiting.first else { return }
    let returns = changes[oldest]?.delivery.returns ?? 0
    guard ChangeThrottle.givesBack(stuckSince: since, returns: returns, at: tools.time.now) else { return }
    registryChangesLost()
    feed?.giveBack()
  }
}
