import PushCore

/// An operation that the state of its subject doesn't allow.
public struct OperationRefusal: Error, Equatable {
  public let reason: String
}

/// What operators have ordered, and the record of it.
extension DeviceStore {
  /// The controls that differ from the default, by subject.
  public func controls() throws(RegistryError) -> [Control] {
    try session.all(SQL.controls, [], Self.control).compactMap(\.self)
  }

  public func control(_ subject: ControlSubject) throws(RegistryError) -> Control {
    try session.first(SQL.controlOf, [Self.text(subject.kind), .text(subject.name)], Self.control) ?? Control(subject)
  }

  /// Performs an operation and records it, in one transaction.
  public func perform(
    _ operation: FleetOperation, now: Int64
  ) throws(RegistryError) -> Result<AuditEvent, OperationRefusal> {
    try transaction(Self.intent(of: operation.action)) { () throws(RegistryError) in
      var event = AuditEvent(
        at: now, actor: operation.actor, origin: operation.origin, action: [], subject: [], reason: operation.reason,
        before: [], after: [])
      switch operation.action {
      case .pause(let subject, let until):
        try change(subject, "pause", &event, operation, now: now) {
          $0.mode = .paused
          $0.until = until
        }
      case .drain(let subject): try change(subject, "drain", &event, operation, now: now) { $0.mode = .draining }
      case .resume(let subject): try change(subject, "resume", &event, operation, now: now) { $0.mode = .running }
      case .discard(let subject):
        let order = try controls().inForce(for: subject, at: now)
        if let sender = order.sender {
          let name = String(decoding: sender, as: UTF8.self)
          return .failure(.init(reason: "\(subject.text) is \(order.mode.rawValue) with its sender: name \(name)"))
        }
        guard order.mode(at: now) == .paused else { return .failure(.init(reason: subject.refusalOfDiscard)) }
        try change(subject, "discard", &event, operation, now: now) { $0.discarded = now }
      case .rate(let subject, let rate): try change(subject, "rate", &event, operation, now: now) { $0.rate = rate }
      case .campaign(let id, let state):
        guard let campaign = try campaign(id, SQL.campaignToChange) else {
          return .failure(.init(reason: "there is no such campaign"))
        }
        guard try change(campaign, to: state, now: now) else {
          return .failure(.init(reason: "it is \(campaign.state.name), so it can't be \(state.name)"))
        }
        event.describe(
          "campaign \(state.verb)", "campaign", id, of: campaign.description.app, before: ["state": campaign.state.name],
          after: ["state": state.name])
      case .messages(let removal):
        let action = removal.action + (removal.count == nil ? " begun" : "")
        let filter = removal.filter.isEmpty ? nil : JSONObject(removal.filter.map { ($0.name, $0.value) })
        event.describe(
          action, "queue", Array(removal.queue.utf8), of: removal.app,
          after: ["messages": JSONOptional(removal.count), "filter": JSONOptional(filter)])
      case .test(let app, let target):
        event.describe("test", "app", app, of: app, after: ["target": target])
      case .forget(let user, let app):
        guard let devices = try forgetUser(user, of: app) else { return .failure(.init(reason: "there is no such user")) }
        event.describe("forget user", "app", app, of: app, after: ["devices": devices])
      case .createKey(let key):
        try createKey(key)
        event.describe("key create", key)
      case .revokeKey(let id):
        guard let key = try key(id), try revokeKey(id, now: now) else {
          return .failure(.init(reason: "there is no valid key of this id"))
        }
        event.describe("key revoke", key)
      }
      event.number = try session.insert(
        SQL.insertAuditEvent,
        [
          .int(event.at), .text(event.app), .text(event.actor), .text(event.origin), .text(event.action),
          .text(event.subject), .text(event.reason), .text(event.before), .text(event.after),
        ])
      return .success(event)
    }
  }

  private static func intent(of action: FleetOperation.Action) -> TransactionIntent {
    switch action {
    case .forget, .createKey, .revokeKey: .devices
    case .pause, .drain, .resume, .discard, .rate: .orders
    case .campaign, .messages, .test: .campaigns
    }
  }

  private func change(
    _ subject: ControlSubject, _ action: String, _ event: inout AuditEvent, _ operation: FleetOperation, now: Int64,
    _ edit: (inout Control) -> Void
  ) throws(RegistryError) {
    let old = try control(subject)
    var new = old
    edit(&new)
    if action != "rate", action != "discard" {
      if action != "pause" { new.until = nil }
      if new.mode != old.mode(at: now) { new.since = now }
      new.actor = operation.actor
      new.reason = operation.reason
    }
    if new.mode == .running { (new.since, new.actor, new.reason) = (nil, nil, nil) }
    if !new.discards(at: now) { new.discarded = nil }
    event.describe(
      action, subject.kind, subject.name, of: subject.app, before: old.json(at: now), after: new.json(at: now))
    let key: [SQLValue] = [Self.text(subject.kind), .text(subject.name)]
    if new.mode == .running, new.rate == nil, new.discarded == nil {
      try session.run(SQL.deleteControl, key)
    } else {
      let values: [SQLValue] = [
        Self.text(new.mode.rawValue), .int(new.until), .text(new.reason), .text(new.actor), .int(new.since), .int(new.rate),
        .int(new.discarded),
      ]
      try session.run(SQL.setControl, key + values)
    }
  }

  /// Grants pushes within an application's rate, for which all shards of the fleet ask. At most a fifth of a second's pushes, or one
  /// push, is saved up.
  /// - Returns: how many of the wanted pushes may be sent now; all if the application has no rate.
  public func grantPushes(_ wanted: Int64, of app: [UInt8], now: Int64) throws(RegistryError) -> Int64 {
    try transaction(.campaigns) { () throws(RegistryError) in
      guard let (rate, pacedTo) = try session.first(SQL.pace, [.text(app)], { ($0.int(0), $0.int(1)) }) else { return wanted }
      let (second, now): (Int64, Int64) = (1_000_000_000, now * 1_000_000)
      // A worker whose clock is ahead must not stop the others.
      let used = pacedTo > now + second ? 0 : pacedTo
      let begin = max(used, now - max(second / 5, second / rate))
      let granted = min(wanted, max(now - begin, 0) * rate / second)
      if granted > 0 { try session.run(SQL.setPace, [.text(app), .int(begin + granted * second / rate)]) }
      return granted
    }
  }

  func change(_ campaign: Campaign, to state: CampaignState, now: Int64) throws(RegistryError) -> Bool {
    guard state.sources.contains(campaign.state) else { return false }
    return try session.run(SQL.setState, [.blob(campaign.description.id), .int(state.rawValue), .int(now)]) > 0
  }

  private static func text(_ word: String) -> SQLValue { .text(Array(word.utf8)) }

  private static func control(_ row: SQLRow) -> Control? {
    guard let subject = ControlSubject(kind: row.bytes(0), name: row.bytes(1)),
      let mode = Control.Mode(rawValue: String(decoding: row.bytes(2), as: UTF8.self))
    else { return nil }
    var control = Control(subject)
    control.mode = mode
    control.until = row.optionalInt(3)
    control.reason = row.optionalBytes(4)
    control.actor = row.optionalBytes(5)
    control.since = row.optionalInt(6)
    control.rate = row.optionalInt(7)
    control.discarded = row.optionalInt(8)
    return control
  }

  // MARK: the audit

  /// The newest events first.
  /// - Parameters:
  ///   - apps: only events of these applications; nil for all events.
  ///   - subject: only events of this subject, such as `app:com.example.app`; nil for all.
  ///   - before: only events with lower numbers.
  public func auditEvents(
    of apps: [[UInt8]]? = nil, subject: [UInt8]? = nil, before: Int64 = .max, limit: Int
  ) throws(RegistryError) -> [AuditEvent] {
    try session.all(SQL.auditEvents, [Self.list(apps), .int(before), .int(limit), .text(subject)], Self.auditEvent)
  }

  /// A JSON object with the array `names`, for ``SQL/ofApps(_:)``; null for nil.
  static func list(_ names: [[UInt8]]?) -> SQLValue {
    .text(names.map { (["names": $0] as JSONObject).line })
  }

  /// Whether a worker should publish an event.
  public func hasAuditEvents(claimedBefore time: Int64) throws(RegistryError) -> Bool {
    try session.firstInt(SQL.unpublished, [.int(time), .int(1)]) != nil
  }

  /// Claims events that no worker has published, so that no other worker publishes them.
  /// - Parameter lease: milliseconds after which an unpublished event may be claimed again.
  public func claimAuditEvents(lease: Int64, limit: Int, now: Int64) throws(RegistryError) -> [AuditEvent] {
    try transaction(.campaigns) { () throws(RegistryError) in
      let numbers = try session.ints(SQL.unpublished, [.int(now - lease), .int(limit)])
      let claims: [SQLValue] = numbers.flatMap { [.int($0), .int(now), .int(now - lease)] }
      let events = try session.ofEach(SQL.claimAuditEvent, claims, Self.auditEvent)
      return events.compactMap(\.self)
    }
  }

  public func auditEventsPublished(_ numbers: [Int64]) throws(RegistryError) {
    try writeEach(.campaigns, SQL.auditEventPublished, numbers.map { .int($0) })
  }

  private static func auditEvent(_ row: SQLRow) -> AuditEvent {
    AuditEvent(
      number: row.int(0), at: row.int(1), app: row.optionalBytes(2), actor: row.bytes(3), origin: row.bytes(4),
      action: row.bytes(5), subject: row.bytes(6), reason: row.optionalBytes(7), before: row.bytes(8), after: row.bytes(9))
  }
}

extension SQL {
  private static let controlColumns = "SELECT kind, name, mode, until, reason, actor, since, rate, discarded FROM controls"
  /// The few lanes first: reports show the first controls only.
  static let controls = Statement("\(controlColumns) ORDER BY CASE kind WHEN 'lane' THEN 0 ELSE 1 END, kind, name")
  static let controlOf = Statement("\(controlColumns) WHERE kind = ?1 AND name = ?2")
  static let deleteControl = Statement("DELETE FROM controls WHERE kind = ?1 AND name = ?2")
  static let setControl = Statement(
    """
    INSERT INTO controls (kind, name, mode, until, reason, actor, since, rate, discarded)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (kind, name) DO UPDATE SET mode = excluded.mode, until = excluded.until, reason = excluded.reason,
      actor = excluded.actor, since = excluded.since, rate = excluded.rate, discarded = excluded.discarded
    """)
  static let pace = Statement(
    locking: "SELECT rate, paced_to FROM controls WHERE kind = 'app' AND name = ?1 AND rate IS NOT NULL")
  static let setPace = Statement("UPDATE controls SET paced_to = ?2 WHERE kind = 'app' AND name = ?1")
  private static let auditColumns = "id, at, app, actor, origin, action, subject, reason, before_state, after_state"
  static let insertAuditEvent = Statement(
    insert: """
      INSERT INTO audit_events (at, app, actor, origin, action, subject, reason, before_state, after_state, claimed_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0)
      """)
  static let auditEvents = ofApps {
    """
    SELECT \(auditColumns) FROM audit_events WHERE id < ?2 AND \($0) AND (CAST(?4 AS TEXT) IS NULL OR subject = ?4)
    ORDER BY id DESC LIMIT ?3
    """
  }
  static let unpublished = Statement("SELECT id FROM audit_events WHERE claimed_at < ?1 ORDER BY id LIMIT ?2")
  /// Has no row if another worker claimed the event since the look.
  static let claimAuditEvent = Statement(
    "UPDATE audit_events SET claimed_at = ?2 WHERE id = ?1 AND claimed_at < ?3 RETURNING \(auditColumns)")
  static let auditEventPublished = Statement("UPDATE audit_events SET claimed_at = NULL WHERE id = ?1")
  /// A statement with the condition that `app` is one of the names in the first parameter, from `DeviceStore.list`. The condition is
  /// true for a null parameter.
  static func ofApps(_ sql: (_ condition: String) -> String) -> Statement {
    Statement(
      sql("(?1 IS NULL OR app IN (SELECT value FROM json_each(?1, '$.names')))"),
      postgres: sql("(?1::text IS NULL OR app IN (SELECT jsonb_array_elements_text(?1::jsonb -> 'names')))"))
  }
  static let purgeAuditEvents = purge("audit_events", by: "id", "at <")
}
