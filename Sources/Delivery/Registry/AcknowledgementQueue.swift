import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Wire

/// What devices have received and read, and their badges: noted in batches, told to backends where they want to know, then acknowledged.
/// Confined to the shard's thread.
///
/// Their order doesn't matter, so any number of workers consume them. A message is kept until the registry has it and its receipts are
/// confirmed; what a message says is read when its batch begins, so that what waits takes no more than its bodies.
package final class AcknowledgementQueue: ChangeFeedHandler, AcknowledgementConsequences, RegistryWatcher {
  struct Message {
    var delivery: Delivery
    let messageID: [UInt8]
    /// Whose rights count; nil where they have been checked. See ``NoteReader/producer(of:)``.
    let producer: [UInt8]?
    /// Publications that aren't confirmed, and one for as long as more may follow.
    var owed = 1
    /// The registry was asked to note it, and what came of that isn't known.
    var mayBeNoted = false
    /// Its connection is gone: its receipts are still published, and nobody acknowledges it.
    var isLost = false
  }

  /// Messages that are being noted, and where what each says stands among all of it.
  private struct Batch {
    var acknowledgements: [Acknowledgement] = []
    var parts: [(number: Int, range: Range<Int>)] = []
  }

  package weak var feed: ChangeFeed?
  package private(set) var counters = Counters()
  private let registry: RegistryClient?
  private let apps: Applications
  private let noteReader: NoteReader
  private let publications: OutcomePublications
  private let wantsReceipts: Bool
  private let outbox: Outbox
  private let time: Turn
  private var letters: QueueLetterLog

  /// In hand, by number.
  private var messages: [Int: Message] = [:]
  private var nextNumber = 0
  private var waiting = Ring<Int>()
  /// The registry has been asked and hasn't answered.
  private var isNoting = false
  /// A batch has failed: nothing is asked for before the next second.
  private var isPaused = false
  /// Messages to be noted each by itself, since the database has refused a value of one of them.
  private var alone = 0
  /// Receipts and dead letters that aren't confirmed.
  private var unconfirmed = 0
  /// Since when the registry has taken nothing that it was asked for; nil while it does.
  private var stuckSince: MonotonicTime?

  /// Acknowledgements in one transaction, unless a single message has more.
  private static let mostAtOnce = 1_000
  /// Receipts on their way above which nothing more is noted: with those of one more batch they are still too few to fill the outbox, for which
  /// pushes would wait.
  private static let mostUnconfirmed = Outbox.highWater - 2 * mostAtOnce

  /// - Parameter registry: nil where none is configured; then none come.
  package init(
    apps: Applications, registry: RegistryClient?, publications: OutcomePublications, wantsReceipts: Bool, outbox: Outbox,
    time: Turn, log: Log
  ) {
    self.apps = apps
    self.registry = registry
    noteReader = NoteReader(prefix: publications.prefix)
    self.publications = publications
    self.wantsReceipts = wantsReceipts
    self.outbox = outbox
    self.time = time
    letters = QueueLetterLog(queue: Topology.acknowledgementOrigin, log: log)
    registry?.acknowledgements = self
    outbox.acknowledgements = self
  }

  /// In hand.
  package var count: Int { messages.count }

  package func registryChangeDelivered(_ delivery: Delivery) {
    let messageID = delivery.properties.messageID ?? UUIDText.random(using: &time.random)
    messages[nextNumber] = Message(
      delivery: delivery, messageID: messageID, producer: noteReader.producer(of: delivery))
    waiting.append(nextNumber)
    nextNumber += 1
  }

  // MARK: noted

  /// At the end of each turn: all that has come since the last batch is noted together.
  package func flush() {
    guard !isNoting, !isPaused, waiting.first != nil, unconfirmed < Self.mostUnconfirmed, !outbox.isFull else { return }
    var batch = Batch()
    while batch.acknowledgements.count < Self.mostAtOnce, alone == 0 || batch.parts.isEmpty, let number = waiting.popFirst() {
      guard let message = messages[number] else { continue }
      switch read(message) {
      case .failure(let refusal): refuse(number, refusal)
      case .success(let said):
        let start = batch.acknowledgements.count
        batch.acknowledgements += said
        batch.parts.append((number, start..<batch.acknowledgements.count))
      }
    }
    guard !batch.parts.isEmpty else { return }
    isNoting = true
    let (acknowledgements, wantsReceipts) = (batch.acknowledgements, wantsReceipts)
    let call = RegistryCall.write(.notes) { try $0.acknowledge(acknowledgements, wantsReceipts: wantsReceipts, now: $1) }
    registry?.call(call) { [weak self] result in
      self?.answered(batch, result)
    }
  }

  private func read(_ message: Message) -> Result<[Acknowledgement], ChangeRefusal> {
    let delivery = message.delivery
    if let reason = NoteReader.refusal(of: delivery.properties) { return .failure(ChangeRefusal(.invalidParameters, reason)) }
    let named = delivery.properties.appID.flatMap { $0.isEmpty ? nil : $0 }
    let read = Acknowledgement.parse(
      delivery.body, size: delivery.bodySize, defaultApp: named ?? apps.only.map { apps[$0].id },
      messageID: delivery.properties.messageID, now: time.wallClock)
    guard case .success(var said) = read else { return read }
    for index in said.indices {
      if let app = apps.index(of: said[index].app) {
        if let producer = message.producer, let refusal = apps[app].rights.refusal(of: producer) {
          return .failure(ChangeRefusal(.notAllowed, refusal.reason))
        }
        said[index].isMessageKept = apps[app].isUPMC
      }
      said[index].isRedelivered = delivery.redelivered || message.mayBeNoted
    }
    return .success(said)
  }

  private func answered(_ batch: Batch, _ result: Result<[AcknowledgementOutcome], RegistryError>) {
    isNoting = false
    switch result {
    case .success(let outcomes):
      stuckSince = nil
      if alone > 0 { alone -= 1 }
      for (number, range) in batch.parts { noted(number, outcomes[range]) }
      flush()
    case .failure(.refused(let why)):
      if batch.parts.count == 1 {
        alone = max(0, alone - 1)
        refuse(batch.parts[0].number, ChangeRefusal(.invalidParameters, why))
      } else {
        alone = batch.parts.count
        putBack(batch)
      }
      flush()
    case .failure:
      if stuckSince == nil { stuckSince = time.now }
      isPaused = true
      for (number, _) in batch.parts { messages[number]?.mayBeNoted = true }
      putBack(batch)
    }
  }

  private func putBack(_ batch: Batch) {
    for (number, _) in batch.parts.reversed() {
      if messages[number]?.isLost == true { messages[number] = nil } else { waiting.prepend(number) }
    }
  }

  private func noted(_ number: Int, _ outcomes: ArraySlice<AcknowledgementOutcome>) {
    for outcome in outcomes {
      switch outcome {
      case .noted(let receipt):
        counters.acknowledgementsNoted += 1
        if let receipt { publish(publications.receipt(receipt, number), number) }
      case .repeated(let receipt):
        counters.acknowledgementsRepeated += 1
        if let receipt { publish(publications.receipt(receipt, number), number) }
      case .unknown: counters.acknowledgementsUnknown += 1
      }
    }
    meet(number)
  }

  private func refuse(_ number: Int, _ refusal: ChangeRefusal) {
    guard let message = messages[number] else { return }
    counters.acknowledgementsRefused += 1
    counters.deadLetters += 1
    let letter = DeadLetter(
      error: PushError(rawValue: refusal.code.rawValue) ?? .invalidParameters, reason: refusal.reason, attempts: 0,
      failedAt: time.wallClock)
    counters.pushes.add(.deadLetter(letter.error), AppSeries.none, .none, .normal)
    letters.note(letter)
    publish(publications.deadLetter(letter, for: message, number), number)
    meet(number)
  }

  // MARK: what follows

  private func publish(_ publication: Publication, _ number: Int) {
    messages[number]?.owed += 1
    unconfirmed += 1
    outbox.publish(publication)
  }

  /// A receipt, or the dead letter, is safe.
  package func publicationConfirmed(_ number: Int) {
    unconfirmed -= 1
    meet(number)
    if waiting.first != nil { time.ensureHooksRun() }
  }

  private func meet(_ number: Int) {
    guard var message = messages[number] else { return }
    message.owed -= 1
    messages[number] = message
    guard message.owed == 0 else { return }
    if !message.isLost { feed?.acknowledge(message.delivery) }
    messages[number] = nil
  }

  /// To be called about once a second.
  package func reportDeadLetters() { letters.report(at: time.now) }

  // MARK: what can't be noted here

  package func registryChanged(isUsable: Bool) {
    feed?.registryChanged(isUsable: isUsable)
    if isUsable { retry() }
  }

  /// To be called about once a second.
  package func retry() {
    isPaused = false
    flush()
  }

  /// The connection that brought them is gone, and they will be delivered again. What the registry is being asked is noted all the same.
  package func registryChangesLost() {
    while let number = waiting.popFirst() { messages[number] = nil }
    for number in messages.keys { messages[number]?.isLost = true }
    stuckSince = nil
  }

  /// To be called about once a second.
  package func giveBackStuck() {
    guard let since = stuckSince, !isNoting, let oldest = waiting.first else { return }
    let returns = messages[oldest]?.delivery.returns ?? 0
    guard ChangeThrottle.givesBack(stuckSince: since, returns: returns, at: time.now) else { return }
    registryChangesLost()
    feed?.giveBack()
  }
}
