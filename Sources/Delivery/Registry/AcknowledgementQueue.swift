import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Wire

/// Stores the acknowledgements of devices (received, read, badge counts) in batches and publishes receipts for backends that
/// want them. The order of acknowledgements doesn't matter, so any number of workers consume them. A message is acknowledged
/// once the registry has stored it and the broker has confirmed its receipts. Bodies are parsed when their batch begins, so a
/// waiting message needs no more memory than its body. Confined to the shard's thread.
package final class AcknowledgementQueue: ChangeFeedHandler, ConsequenceOwner {
  struct Message {
    var delivery: Delivery
    let messageID: [UInt8]
    /// The user whose rights are to be checked; nil if a worker has checked them. See ``NoteReader/producer(of:)``.
    let producer: [UInt8]?
    /// The number of unconfirmed publications, plus one while more may follow.
    var owed = 1
    /// A registry write failed, and the registry may have stored the message all the same.
    var mayBeNoted = false
    /// The connection is gone: receipts are still published, but the message can't be acknowledged.
    var isLost = false
  }

  /// The messages of one write, and the range of each message's acknowledgements in it.
  private struct Batch {
    var acknowledgements: [Acknowledgement] = []
    var parts: [(number: Int, range: Range<Int>)] = []
  }

  package weak var feed: ChangeFeed?
  package private(set) var counters = Counters()
  private let tools: ShardTools
  private let noteReader: NoteReader
  private let wantsReceipts: Bool
  package let letters: QueueLetterLog

  /// Unacknowledged messages, by number.
  private var messages: [Int: Message] = [:]
  private var nextNumber = 0
  private var waiting = Ring<Int>()
  private var isNoting = false
  /// A batch has failed: the next one begins within a second.
  private var isPaused = false
  /// The number of messages to write one by one, because the database has refused a value of their batch.
  private var alone = 0
  private var unconfirmed = 0
  /// The time of the first failed write since the last successful one; nil after a success.
  private var stuckSince: MonotonicTime?

  /// The limit of acknowledgements in a transaction. A single message may have more.
  private static let mostAtOnce = 1_000
  /// The limit of unconfirmed receipts above which no batch begins. The receipts of one more batch still leave room in the
  /// outbox for pushes.
  private static let mostUnconfirmed = Outbox.highWater - 2 * mostAtOnce

  /// Without a registry, no acknowledgements arrive.
  package init(_ tools: ShardTools, wantsReceipts: Bool) {
    self.tools = tools
    noteReader = NoteReader(prefix: tools.publications.prefix)
    self.wantsReceipts = wantsReceipts
    letters = QueueLetterLog(queue: Topology.acknowledgementOrigin, log: tools.log)
    tools.registry?.watchers.append { [weak self] in self?.registryChanged(isUsable: $0) }
  }

  package var count: Int { messages.count }

  package func registryChangeDelivered(_ delivery: Delivery) {
    let messageID = delivery.properties.messageID ?? UUIDText.random(using: &tools.time.random)
    messages[nextNumber] = Message(
      delivery: delivery, messageID: messageID, producer: noteReader.producer(of: delivery))
    waiting.append(nextNumber)
    nextNumber += 1
  }

  // MARK: storing

  /// Writes all messages that have arrived since the last batch. Called at the end of each turn.
  package func flush() {
    guard !isNoting, !isPaused, waiting.first != nil, unconfirmed < Self.mostUnconfirmed, !tools.outbox.isFull else { return }
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
    tools.registry?.call(call) { [weak self] result in
      self?.answered(batch, result)
    }
  }

  private func read(_ message: Message) -> Result<[Acknowledgement], ChangeRefusal> {
    let delivery = message.delivery
    if let reason = NoteReader.refusal(of: delivery.properties) { return .failure(ChangeRefusal(.invalidParameters, reason)) }
    let named = delivery.properties.appID.flatMap { $0.isEmpty ? nil : $0 }
    let read = Acknowledgement.parse(
      delivery.body, size: delivery.bodySize, defaultApp: named ?? tools.apps.only.map { tools.apps[$0].id },
      messageID: delivery.properties.messageID, now: tools.time.wallClock)
    guard case .success(var said) = read else { return read }
    for index in said.indices {
      if let app = tools.apps.index(of: said[index].app) {
        if let producer = message.producer, let refusal = tools.apps[app].rights.refusal(of: producer) {
          return .failure(ChangeRefusal(.notAllowed, refusal.reason))
        }
        said[index].isMessageKept = tools.apps[app].isUPMC
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
      if stuckSince == nil { stuckSince = tools.time.now }
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
        if let receipt { publish(receipt, number) }
      case .repeated(let receipt):
        counters.acknowledgementsRepeated += 1
        if let receipt { publish(receipt, number) }
      case .unknown: counters.acknowledgementsUnknown += 1
      }
    }
    meet(number)
  }

  private func refuse(_ number: Int, _ refusal: ChangeRefusal) {
    guard let message = messages[number] else { return }
    counters.acknowledgementsRefused += 1
    counters.deadLetters += 1
    let letter = letters.letter(refusal, failedAt: tools.time.wallClock)
    counters.pushes.add(.deadLetter(letter.error), AppSeries.none, nil, .normal)
    publish(tools.publications.deadLetter(letter, for: message, .item(number, of: self)), number)
    meet(number)
  }

  // MARK: consequences

  private func publish(_ receipt: Receipt, _ number: Int) {
    publish(tools.publications.receipt(receipt, .item(number, of: self)), number)
  }

  private func publish(_ publication: Publication, _ number: Int) {
    messages[number]?.owed += 1
    unconfirmed += 1
    tools.outbox.publish(publication)
  }

  /// The broker has confirmed a receipt or the dead letter.
  package func publicationConfirmed(_ number: Int) {
    unconfirmed -= 1
    meet(number)
    if waiting.first != nil { tools.time.ensureHooksRun() }
  }

  private func meet(_ number: Int) {
    guard var message = messages[number] else { return }
    message.owed -= 1
    messages[number] = message
    guard message.owed == 0 else { return }
    if !message.isLost { feed?.acknowledge(message.delivery) }
    messages[number] = nil
  }

  // MARK: failures

  private func registryChanged(isUsable: Bool) {
    feed?.registryChanged(isUsable: isUsable)
    if isUsable { retry() }
  }

  /// To be called about once a second.
  package func retry() {
    isPaused = false
    flush()
  }

  /// The connection is gone, and the broker will deliver the messages again. A write under way is completed.
  package func registryChangesLost() {
    while let number = waiting.popFirst() { messages[number] = nil }
    for number in messages.keys { messages[number]?.isLost = true }
    stuckSince = nil
  }

  /// To be called about once a second.
  package func giveBackStuck() {
    guard let since = stuckSince, !isNoting, let oldest = waiting.first else { return }
    let returns = messages[oldest]?.delivery.returns ?? 0
    guard ChangeThrottle.givesBack(stuckSince: since, returns: returns, at: tools.time.now) else { return }
    registryChangesLost()
    feed?.giveBack()
  }
}
