import PushCore

/// A shard's request to the registry, with the type of its answer. ``DeviceStore`` documents the operations.
public struct RegistryCall<Answer: Sendable>: Sendable {
  public let request: RegistryRequest

  private init(_ request: RegistryRequest) { self.request = request }

  public static func read(_ operation: @escaping @Sendable (DeviceStore) throws -> Answer) -> Self {
    .read { store, _ in try operation(store) }
  }

  public static func read(_ operation: @escaping @Sendable (DeviceStore, _ now: Int64) throws -> Answer) -> Self {
    .init(.call(nil) { (store, now) throws(RegistryError) in try fault { try operation(store, now) } })
  }

  /// - Parameters:
  ///   - kind: the records to write.
  ///   - operation: also gets the time in Unix milliseconds.
  public static func write(
    _ kind: WriteKind, _ operation: @escaping @Sendable (DeviceStore, _ now: Int64) throws -> Answer
  ) -> Self {
    .init(.call(kind) { (store, now) throws(RegistryError) in try fault { try operation(store, now) } })
  }

  /// A store throws only `RegistryError`, but the closure's type doesn't say so.
  private static func fault(_ operation: () throws -> Answer) throws(RegistryError) -> Answer {
    do { return try operation() } catch { throw error as? RegistryError ?? .unusable(.broken, "\(error)") }
  }
}

/// A call in the form for the store's thread. Answers are untyped; ``RegistryCall`` knows the type.
public enum RegistryRequest: Sendable {
  /// Answered with a `ChangeAnswer`. Successive changes with the same fence share a transaction.
  indirect case change(RegistryChange, fence: Int64)
  /// Answered with ``NoteAnswer/value``. Successive notes share a transaction.
  case note(Note)
  /// Checks that the store answers and, if writes to devices failed lately, that it accepts them.
  case probe
  case call(WriteKind?, @Sendable (DeviceStore, _ now: Int64) throws(RegistryError) -> any Sendable)

  package var writes: WriteKind? {
    switch self {
    case .change, .probe: .devices
    case .note: .notes
    case .call(let writes, _): writes
    }
  }

  package func answer(_ store: DeviceStore, now: Int64) throws(RegistryError) -> any Sendable {
    switch self {
    case .change(let change, let fence): return try store.apply([change], fence: fence, now: now)[0]
    case .note(let note): return try store.note([(note, now)]).answers[0].value
    case .probe: return try store.probe(isWriting: false)
    case .call(_, let operation): return try operation(store, now)
    }
  }
}

/// The target of a write. Writes of one kind wait for each other.
public enum WriteKind: Int, CaseIterable, Sendable {
  /// Devices, users, topics and groups.
  case devices
  /// Campaigns and their counts.
  case campaigns
  /// Acknowledgements and badges.
  case notes
}

extension RegistryCall<ChangeAnswer> {
  public static func apply(_ change: RegistryChange, fence: Int64) -> Self { .init(.change(change, fence: fence)) }
}

extension RegistryCall<GatewayRequest?> {
  /// Answered with nil if the caller should publish the request.
  public static func claimRequest(_ name: [UInt8], message: [UInt8], body: [UInt8], until: Int64) -> Self {
    .init(.note(.claim(name: name, message: message, body: body, until: until)))
  }
}

extension RegistryCall<GatewayRequest.State?> {
  public static func settleRequest(
    _ name: [UInt8], _ state: GatewayRequest.State?, until: Int64, isLate: Bool = false
  ) -> Self {
    .init(.note(.settle(name: name, state, until: until, isLate: isLate)))
  }
}

extension RegistryCall<[UInt8]?> {
  /// Answered with the page's name, or with nil if the application has no room for another page.
  public static func keepPage(_ page: ContentPage) -> Self { .init(.note(.page(page))) }
}

extension RegistryCall<[Int64?]> {
  /// Answered in the order of the devices.
  public static func countBadges(_ count: BadgeCount) -> Self {
    guard count.rule == .look else { return .init(.note(.badges(count))) }
    return .read { store, now in
      guard case .badges(let badges)? = try store.note([(.badges(count), now)]).answers.first else { return [] }
      return badges
    }
  }
}

extension RegistryCall<Void> {
  public static func keepMessage(_ messageID: [UInt8]) -> Self { .init(.note(.message(messageID))) }
  public static var probe: Self { .init(.probe) }
}
