import AMQP
import Wire

extension VirtualBroker {
  func addStandardExchanges() {
    for (name, kind) in [
      ("amq.direct", Exchange.Kind.direct), ("amq.fanout", .fanout), ("amq.topic", .topic), ("amq.headers", .headers),
    ] {
      exchanges[name] = Exchange(
        name: name, kind: kind, durable: true, autoDelete: false, internal: false, arguments: FieldTable())
    }
  }

  func declare(_ declaration: ExchangeDeclaration) throws(Refusal) {
    let name = String(decoding: declaration.name, as: UTF8.self)
    let type = String(decoding: declaration.type, as: UTF8.self)
    let subject = "exchange '\(name)' in vhost '/'"
    if declaration.passive {
      guard exchanges[name] != nil else { throw .notFound("no \(subject)") }
      return
    }
    guard let kind = Exchange.Kind(rawValue: type) else { throw .commandInvalid("unknown exchange type '\(type)'") }
    if let existing = exchanges[name] {
      func require(_ key: String, _ received: String, _ current: String) throws(Refusal) {
        guard received != current else { return }
        throw .preconditionFailed(
          "inequivalent arg '\(key)' for \(subject): received '\(received)' but current is '\(current)'")
      }
      try require("type", type, existing.kind.rawValue)
      try require("durable", "\(declaration.durable)", "\(existing.durable)")
      try require("auto_delete", "\(declaration.autoDelete)", "\(existing.autoDelete)")
      try require("internal", "\(declaration.internal)", "\(existing.internal)")
      return try QueueArguments.check(
        declaration.arguments, equals: existing.arguments, keys: ["alternate-exchange"], of: subject)
    }
    guard !name.isEmpty, !name.hasPrefix("amq.") else {
      throw .accessRefused("exchange name '\(name)' contains reserved prefix 'amq.*'")
    }
    if kind == .consistentHash, declaration.arguments.string("hash-property") != Array("message_id".utf8) {
      throw .notImplemented("the model hashes messages by the property message_id only")
    }
    exchanges[name] = Exchange(
      name: name, kind: kind, durable: declaration.durable, autoDelete: declaration.autoDelete, internal: declaration.internal,
      arguments: declaration.arguments)
  }

  func declare(_ declaration: QueueDeclaration, from connection: ServerConnection) throws(Refusal) -> Queue {
    var declaration = declaration
    if declaration.name.isEmpty {
      guard !declaration.passive else { throw .notFound("no previously declared queue") }
      declaration.name = Array("amq.gen-\(nextName())".utf8)
    }
    let name = String(decoding: declaration.name, as: UTF8.self)
    if declaration.passive { return try queue(declaration.name, from: connection) }
    if let existing = queues[name] {
      _ = try queue(declaration.name, from: connection)
      let subject = "queue '\(name)' in vhost '/'"
      for (key, received, current) in [
        ("durable", declaration.durable, existing.declaration.durable),
        ("auto_delete", declaration.autoDelete, existing.declaration.autoDelete),
        ("exclusive", declaration.exclusive, existing.declaration.exclusive),
      ] where received != current {
        throw .preconditionFailed(
          "inequivalent arg '\(key)' for \(subject): received '\(received)' but current is '\(current)'")
      }
      try QueueArguments.check(declaration.arguments, equals: existing.declaration.arguments, queue: name)
      return existing
    }
    let arguments = try QueueArguments(declaration.arguments, queue: name)
    if arguments.kind == .quorum, !declaration.durable || declaration.exclusive || declaration.autoDelete {
      let property = !declaration.durable ? "non-durable" : declaration.exclusive ? "exclusive" : "auto-delete"
      throw .preconditionFailed("invalid property '\(property)' for queue '\(name)' in vhost '/'")
    }
    let queue = Queue(
      name: name, declaration: declaration, arguments: arguments, owner: declaration.exclusive ? connection.number : nil,
      publisher: nextPublisher())
    queues[name] = queue
    return queue
  }

  func queue(_ name: [UInt8], from connection: ServerConnection) throws(Refusal) -> Queue {
    let name = String(decoding: name, as: UTF8.self)
    guard let queue = queues[name] else { throw .notFound("no queue '\(name)' in vhost '/'") }
    guard queue.owner == nil || queue.owner == connection.number else {
      throw .resourceLocked(
        "cannot obtain exclusive access to locked queue '\(name)' in vhost '/'. It could be originally declared on another "
          + "connection or the exclusive property value does not match that of the original declaration.")
    }
    return queue
  }

  func bind(
    _ queue: [UInt8], to exchange: [UInt8], _ key: [UInt8], _ arguments: FieldTable, from connection: ServerConnection
  ) throws(Refusal) {
    let queue = try self.queue(queue, from: connection)
    let exchange = try self.exchange(exchange)
    try exchange.bind(Exchange.Binding(to: .queue(queue.name), routingKey: key, arguments: arguments))
  }

  /// Has no effect if there is no such binding, queue or exchange.
  func unbind(
    _ queue: [UInt8], from exchange: [UInt8], _ key: [UInt8], _ arguments: FieldTable, _ connection: ServerConnection
  ) throws(Refusal) {
    let name = try Self.exchangeName(exchange)
    let destination = Exchange.Destination.queue(String(decoding: queue, as: UTF8.self))
    let binding = Exchange.Binding(to: destination, routingKey: key, arguments: arguments)
    guard let exchange = exchanges[name], exchange.bindings.contains(binding) else { return }
    _ = try self.queue(queue, from: connection)
    exchange.unbind { $0 == binding }
  }

  func bindExchange(
    _ name: [UInt8], to source: [UInt8], _ key: [UInt8], _ arguments: FieldTable
  ) throws(Refusal) {
    let destination = try Self.exchangeName(name)
    let source = try exchange(source)
    guard exchanges[destination] != nil else { throw .notFound("no exchange '\(destination)' in vhost '/'") }
    try source.bind(Exchange.Binding(to: .exchange(destination), routingKey: key, arguments: arguments))
  }

  /// Deletes an exchange with all bindings from it and to it. Has no effect if it doesn't exist.
  func deleteExchange(_ name: [UInt8], ifUnused: Bool) throws(Refusal) {
    let name = try Self.exchangeName(name)
    let subject = "exchange '\(name)' in vhost '/'"
    guard !name.hasPrefix("amq.") else { throw .accessRefused("deletion of system \(subject) not allowed") }
    guard let exchange = exchanges[name] else { return }
    guard !ifUnused || exchange.bindings.isEmpty else { throw .preconditionFailed("\(subject) in use") }
    exchanges[name] = nil
    for other in exchanges.values { other.unbind { $0.destination == .exchange(name) } }
  }

  private func exchange(_ name: [UInt8]) throws(Refusal) -> Exchange {
    let name = try Self.exchangeName(name)
    guard let exchange = exchanges[name] else { throw .notFound("no exchange '\(name)' in vhost '/'") }
    return exchange
  }

  /// Refuses the default exchange.
  private static func exchangeName(_ name: [UInt8]) throws(Refusal) -> String {
    guard !name.isEmpty else { throw .accessRefused("operation not permitted on the default exchange") }
    return String(decoding: name, as: UTF8.self)
  }

  /// Deletes a queue with its messages and notifies its consumers. Returns the number of ready messages.
  func delete(_ queue: Queue, at now: MonotonicTime) -> Int {
    let count = queue.ready
    for entry in queue.removeReady(where: { _ in true }) {
      note(.dropped(entry.message, queue: queue.name, because: .purged), at: now)
    }
    queues[queue.name] = nil
    for exchange in exchanges.values { exchange.unbind { $0.destination == .queue(queue.name) } }
    for consumer in queue.consumers { consumer.channel.cancelled(consumer) }
    queue.isDeleted = true
    return count
  }

  func purge(_ queue: Queue, at now: MonotonicTime) -> Int {
    let purged = queue.removeReady { _ in true }
    for entry in purged { note(.dropped(entry.message, queue: queue.name, because: .purged), at: now) }
    touch(queue)
    return purged.count
  }

  func connectionEnded(_ connection: ServerConnection, at now: MonotonicTime) {
    for queue in sortedQueues where queue.owner == connection.number { _ = delete(queue, at: now) }
  }
}
