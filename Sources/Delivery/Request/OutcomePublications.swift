import AMQP
import Broker
import DeviceRegistry
import PushCore

/// Builds the messages that follow from a request, one function per kind; docs/asyncapi.yaml describes them.
package struct OutcomePublications {
  let prefix: String
  private let events: [UInt8]
  private let dead: [UInt8]
  private let retry: [UInt8]
  private let hold: [UInt8]
  private let apps: Applications
  let ladder: Ladder
  private let returns: [UInt8]
  private let ownQueues: Set<[UInt8]>
  private let lists: [[UInt8]]

  package init(prefix: String, apps: Applications, steps: [RetryStep]) {
    self.prefix = prefix
    let topology = Topology(prefix: prefix, ladder: steps, laneQueues: Topology.mostLaneQueues)
    events = Array(topology.eventsExchange.utf8)
    dead = Array(topology.deadExchange.utf8)
    retry = Array(topology.retryExchange.utf8)
    hold = Array(topology.holdExchange.utf8)
    returns = Array(topology.returnExchange.utf8)
    self.apps = apps
    ladder = Ladder(steps: steps)
    lists = topology.listPrefixes.map { Array($0.utf8) }
    ownQueues = Set((topology.queues.map(\.name) + [topology.traceQueue]).map { Array($0.utf8) })
  }

  /// - Parameter request: the properties of the message that the event follows from, if any.
  func feedback(
    _ event: FeedbackEvent, from request: BasicProperties? = nil, _ owner: Publication.Owner
  ) -> Publication {
    let properties = outcomeProperties(
      event.messageID, correlationID: request?.correlationID, trace: request?.headers[Self.traceparent], app: event.app)
    return Publication(
      kind: .feedback, exchange: events, routingKey: Self.key(Topology.feedbackKey, event.app), properties: properties,
      body: event.json(), owner: owner)
  }

  /// The unchanged request, or a copy that names one of several devices. A page keeps its ticket, even if unreadable, so that a
  /// replay sends only that page. ``Topology/originHeader`` has the queue to replay to.
  /// - Parameters:
  ///   - recipient: the one failed device; nil for the whole request.
  ///   - keepsNotes: keep the notes of earlier rounds, which are the fleet's own.
  func deadLetter(
    _ letter: DeadLetter, naming recipient: Int? = nil, isWholePage: Bool = false, keepsNotes: Bool = false,
    for entry: InFlight
  ) -> Publication {
    let naming = entry.recipients.count > 1 || entry.isPage ? recipient : nil
    var properties = requestProperties(entry)
    if keepsNotes {
      properties.headers = Self.withNotes(entry.delivery)
      let owner = Publication.Owner.request(entry.index)
      return deadLetter(letter, entry.delivery, properties, origin: entry.source.queue.origin, owner: owner)
    }
    if isWholePage, let ticket = entry.delivery.properties.headers[PageTicket.header] {
      properties.headers.append(PageTicket.header, ticket)
    }
    let queue = isWholePage || !entry.source.queue.isFanOut ? entry.source.queue : entry.source.queue.sending
    return deadLetter(letter, entry.delivery, properties, origin: queue.origin, owner: .request(entry.index), naming: naming)
  }

  func deadLetter(_ letter: DeadLetter, for change: ChangeQueue.Change, _ owner: Publication.Owner) -> Publication {
    var properties = requestProperties(of: change.delivery, change.messageID, producer: change.producer)
    if change.reply == .dropped, change.producer == nil { properties.replyTo = nil }
    return deadLetter(letter, change.delivery, properties, origin: Topology.registryOrigin, owner: owner)
  }

  func deadLetter(
    _ letter: DeadLetter, for message: AcknowledgementQueue.Message, _ owner: Publication.Owner
  ) -> Publication {
    let properties = requestProperties(of: message.delivery, message.messageID, producer: message.producer)
    return deadLetter(letter, message.delivery, properties, origin: Topology.acknowledgementOrigin, owner: owner)
  }

  /// A device's acknowledgement. The message id is the same if it is published again.
  func receipt(_ receipt: Receipt, _ owner: Publication.Owner) -> Publication {
    let id = DeviceIdentity.apnsID(
      messageID: receipt.messageID, token: Array("\(receipt.event.rawValue):".utf8) + receipt.registration)
    return Publication(
      kind: .receipt, exchange: events, routingKey: Self.key(Topology.receiptKey, receipt.app),
      properties: outcomeProperties(id, app: receipt.app), body: receipt.json, owner: owner)
  }

  /// The routing key of an operation on the whole fleet ends with a hyphen.
  func audit(_ event: AuditEvent, _ owner: Publication.Owner) -> Publication {
    Publication(
      kind: .audit, exchange: events, routingKey: Self.key(Topology.auditKey, event.app ?? Array("-".utf8)),
      properties: outcomeProperties(Array("audit-\(event.number)".utf8), app: event.app), body: event.json.line,
      owner: owner)
  }

  private func deadLetter(
    _ letter: DeadLetter, _ delivery: Delivery, _ request: BasicProperties, origin: String, owner: Publication.Owner,
    naming: Int? = nil
  ) -> Publication {
    var properties = request
    properties.headers.append(Topology.originHeader, .text(origin))
    for (name, value) in letter.headers {
      switch value {
      case .text(let text): properties.headers.append(name, .string(text))
      case .number(let number): properties.headers.append(name, .integer(number))
      }
    }
    if delivery.isTruncated { properties.headers.append("x-push-truncated-from", .integer(Int64(clamping: delivery.bodySize))) }
    return Publication(
      kind: .deadLetter, exchange: dead, routingKey: Array(Topology.deadKey.utf8), properties: properties, body: delivery.body,
      owner: owner, naming: naming)
  }

  func result(_ body: [UInt8], for entry: InFlight) -> Publication {
    Publication(
      kind: .result, exchange: events, routingKey: Self.key(Topology.resultKey, app(of: entry)),
      properties: outcomeProperties(entry),
      body: body, owner: .request(entry.index))
  }

  /// The result for `reply_to`, through the default exchange; nil if there is no `reply_to`, or it is one of the fleet's
  /// queues.
  func reply(_ body: [UInt8], for entry: InFlight) -> Publication? {
    guard entry.source.reply == .allowed, let queue = replyQueue(entry.delivery.properties.replyTo) else { return nil }
    return Publication(
      kind: .reply, exchange: [], routingKey: queue, properties: outcomeProperties(entry), body: body,
      owner: .request(entry.index))
  }

  func reply(_ body: [UInt8], to change: ChangeQueue.Change, _ owner: Publication.Owner) -> Publication? {
    let request = change.delivery.properties
    guard change.reply == .allowed, let queue = replyQueue(request.replyTo) else { return nil }
    let properties = outcomeProperties(
      change.messageID, correlationID: request.correlationID, trace: request.headers[Self.traceparent], app: request.appID)
    return Publication(kind: .reply, exchange: [], routingKey: queue, properties: properties, body: body, owner: owner)
  }

  private func replyQueue(_ name: [UInt8]?) -> [UInt8]? {
    guard let name, !name.isEmpty, !ownQueues.contains(name), !name.starts(with: hold + [UInt8(ascii: ".")]),
      !lists.contains(where: name.starts)
    else { return nil }
    return name
  }

  /// The copy for a step of the ladder.
  /// - Parameter now: unix milliseconds of the clock that dated the record's targets.
  func retry(_ record: RetryRecord, by step: RetryStep, at now: Int64, for entry: InFlight) -> Publication {
    copy(.retry, retry, Array(step.name.utf8), notedProperties(record, due: now + step.delay, entry), of: entry)
  }

  /// The copy for the application's hold queue.
  /// - Parameter now: unix milliseconds of the clock that dated the record's targets.
  func hold(_ record: RetryRecord, of app: Int, at now: Int64, for entry: InFlight) -> Publication {
    let copy = copy(.hold, hold, apps[app].id, notedProperties(record, due: now, entry), of: entry)
    copy.properties.expiration = Topology.heldExpiry
    return copy
  }

  /// The request's properties with a worker's notes.
  private func notedProperties(_ record: RetryRecord, due: Int64, _ entry: InFlight) -> BasicProperties {
    var record = record
    if record.settled != nil { record.due = due }
    var properties = requestProperties(entry)
    record.append(to: &properties.headers)
    entry.broadcast.page?.append(to: &properties.headers)
    Self.appendFirstSeen(of: entry, to: &properties)
    return properties
  }

  /// The unchanged message with its notes, for a newer worker; after at least `delay` milliseconds.
  /// - Parameter since: unix milliseconds when it was first put aside.
  func aside(since: Int64, after delay: Int64, for entry: InFlight) -> Publication {
    var properties = entry.delivery.properties
    properties.headers = MessageHeaders.withoutBrokers(properties.headers).removing([Topology.originHeader, Self.asideSince])
    properties.headers.append(Self.asideSince, .integer(since))
    properties.deliveryMode = 2
    properties.expiration = nil
    properties.userID = nil
    return copy(.retry, retry, Array(ladder.step(for: delay).name.utf8), properties, of: entry)
  }

  /// Since when a message has waited for a newer worker.
  static let asideSince = "x-push-aside-since"

  /// The message with other properties.
  /// - Parameter origin: the queue that it returns to.
  private func copy(
    _ kind: Publication.Kind, _ exchange: [UInt8], _ key: [UInt8], _ properties: BasicProperties, origin: WorkQueue? = nil,
    of entry: InFlight
  ) -> Publication {
    var properties = properties
    properties.headers.append(Topology.originHeader, .text((origin ?? entry.source.queue).origin))
    return Publication(
      kind: kind, exchange: exchange, routingKey: key, properties: properties, body: entry.delivery.body,
      owner: .request(entry.index))
  }

  /// The unchanged request for the quarantine, where it is processed alone. Notes that a producer made up are removed: the
  /// copy's exchange would make them credible.
  /// - Parameter losses: how often it has come back from the quarantine.
  func quarantine(_ entry: InFlight, losses: Int64) -> Publication {
    let keepsNotes = entry.source.areNotesOurs
    var properties = entry.delivery.properties
    properties.headers = keepsNotes ? Self.withNotes(entry.delivery) : MessageHeaders.withoutAdded(properties.headers)
    if !keepsNotes { Self.append(producer: entry.source.producer, to: &properties.headers) }
    properties.deliveryMode = 2
    properties.userID = nil
    let copy = copy(.retry, retry, Array(Topology.quarantineKey.utf8), properties, of: entry)
    if losses > 0 { copy.properties.headers.append(Self.losses, .integer(losses)) }
    return copy
  }

  static let losses = "x-push-quarantine-losses"

  /// The headers with workers' notes, without those about the message's path.
  private static func withNotes(_ delivery: borrowing Delivery) -> FieldTable {
    MessageHeaders.withoutBrokers(delivery.properties.headers).removing([Topology.originHeader, losses])
  }

  /// An unknown app's id may have 255 bytes; the routing key is cut to its limit.
  private static func key(_ kind: String, _ app: [UInt8]) -> [UInt8] {
    var key: [UInt8] = []
    key.reserveCapacity(min(kind.utf8.count + app.count, 255))
    key.append(contentsOf: kind.utf8)
    key.append(contentsOf: app.prefix(255 - key.count))
    return key
  }

  /// A page of the request's audience for the fan-out queue.
  func page(_ ticket: PageTicket, for entry: InFlight) -> Publication {
    var properties = requestProperties(entry)
    properties.appID = app(of: entry)
    ticket.append(to: &properties.headers)
    Self.appendFirstSeen(of: entry, to: &properties)
    // If the broker dead-letters the page, a replay needs its queue.
    let queue = entry.source.queue.fanOut
    let (exchange, key) = ("\(prefix).\(queue.route.exchange)", queue.route.key)
    return copy(.page, Array(exchange.utf8), Array(key.utf8), properties, origin: queue, of: entry)
  }

  /// The request again, with a message id. It comes back as a worker's copy, without the broker's `user_id`, which a worker's
  /// copy can't have.
  func again(for entry: InFlight) -> Publication {
    var properties = requestProperties(entry)
    properties.expiration = entry.delivery.properties.expiration
    Self.appendFirstSeen(of: entry, to: &properties)
    return copy(.retry, returns, [], properties, of: entry)
  }

  private func app(of entry: InFlight) -> [UInt8] {
    entry.identity.app.map { apps[$0].id } ?? entry.delivery.properties.appID ?? Array("unknown".utf8)
  }

  /// The request's properties without those that a broker or worker added, and without `expiration`, which would end it on the
  /// ladder. It says if the producer's rights are unchecked. It names the application that was found, because rights are that
  /// application's, and the configuration may change before the copy is read.
  private func requestProperties(_ entry: InFlight) -> BasicProperties {
    var properties = requestProperties(of: entry.delivery, entry.identity.messageID, producer: entry.source.producer)
    if let app = entry.identity.app { properties.appID = apps[app].id }
    // If the producer is still named, the reply queue is checked again.
    if entry.source.reply == .dropped, entry.source.producer == nil { properties.replyTo = nil }
    return properties
  }

  private func requestProperties(
    of delivery: borrowing Delivery, _ messageID: [UInt8], producer: [UInt8]?
  ) -> BasicProperties {
    var properties = delivery.properties
    properties.headers = MessageHeaders.withoutAdded(properties.headers)
    Self.append(producer: producer, to: &properties.headers)
    properties.messageID = messageID
    properties.deliveryMode = 2
    properties.expiration = nil
    properties.userID = nil
    return properties
  }

  /// Notes when the request was first seen, from which its lifetime counts. A producer's timestamp makes this unnecessary.
  private static func appendFirstSeen(of entry: InFlight, to properties: inout BasicProperties) {
    guard properties.timestamp == nil, entry.identity.published > 0 else { return }
    properties.headers.append(NoteReader.firstSeenHeader, .integer(entry.identity.published))
  }

  private static func append(producer: [UInt8]?, to headers: inout FieldTable) {
    if let producer { headers.append(NoteReader.producerHeader, .string(producer)) }
  }

  private func outcomeProperties(_ entry: InFlight) -> BasicProperties {
    // Without a copy of all the request's properties.
    outcomeProperties(
      entry.identity.messageID, correlationID: entry.delivery.properties.correlationID,
      trace: entry.delivery.properties.headers[Self.traceparent],
      app: entry.identity.app.map { apps[$0].id } ?? entry.delivery.properties.appID)
  }

  private func outcomeProperties(
    _ messageID: [UInt8], correlationID: [UInt8]? = nil, trace: FieldValue? = nil, app: [UInt8]?
  ) -> BasicProperties {
    var properties = BasicProperties()
    properties.contentType = Self.json
    properties.deliveryMode = 2
    properties.messageID = messageID
    properties.correlationID = correlationID
    properties.appID = app
    if let trace { properties.headers.append(Self.traceparent, trace) }
    return properties
  }

  private static let json = Array("application/json".utf8)
  private static let traceparent = "traceparent"
}
