import PushCore

/// An operator's action. The command line and the HTTP interface perform the same operations.
public struct FleetOperation: Sendable {
  public enum Action: Sendable {
    /// - Parameter until: Unix milliseconds; nil for no end.
    case pause(ControlSubject, until: Int64?)
    case drain(ControlSubject)
    case resume(ControlSubject)
    /// Discards the pushes that wait for a paused credential.
    case discard(ControlSubject)
    /// Pushes per second of the whole fleet; nil for no limit.
    case rate(ControlSubject, Int64?)
    case campaign([UInt8], CampaignState)
    case messages(Removal)
    /// A request that is sent to try it.
    /// - Parameter target: the kind of the target, such as `group`.
    case test(app: [UInt8], target: String)
    /// Deletes a user. The record doesn't name the user.
    case forget(user: [UInt8], app: [UInt8])
    case createKey(GatewayKey)
    /// - Parameter id: the key's.
    case revokeKey(id: [UInt8])
  }

  /// Messages that an operator has removed from a queue, or sent back from it.
  public struct Removal: Sendable {
    /// Such as `dead replay`.
    public var action: String
    public var app: [UInt8]?
    public var queue: String
    /// Nil when the removal begins.
    public var count: Int?
    /// What selected the messages; empty for all messages.
    public var filter: [(name: String, value: [UInt8])]

    public init(_ action: String, app: [UInt8]?, queue: String, count: Int?, filter: [(name: String, value: [UInt8])] = []) {
      self.action = action
      self.app = app
      self.queue = queue
      self.count = count
      self.filter = filter
    }
  }

  public var action: Action
  /// The operator: a system user, a proxy's user or a key.
  public var actor: [UInt8]
  /// Where the operator is: a host or an address.
  public var origin: [UInt8]
  public var reason: [UInt8]?

  /// A reason has at most this number of bytes, and no control characters.
  public static let longestReason = 500
  public static func isReason(_ text: [UInt8]) -> Bool {
    text.count <= longestReason && text.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }

  public init(_ action: Action, by actor: [UInt8], from origin: [UInt8], because reason: [UInt8]? = nil) {
    self.action = action
    self.actor = actor
    self.origin = origin
    self.reason = reason
  }
}

/// An operation as it was performed: docs/schema/audit.schema.json.
public struct AuditEvent: Equatable, Sendable {
  /// Ascending in the registry; 0 before it is stored.
  public var number: Int64 = 0
  /// Unix milliseconds.
  public var at: Int64
  /// Nil for an operation on the whole fleet.
  public var app: [UInt8]?
  public var actor: [UInt8]
  public var origin: [UInt8]
  public var action: [UInt8]
  public var subject: [UInt8]
  public var reason: [UInt8]?
  /// The subject's state before and after, as JSON objects.
  public var before: [UInt8]
  public var after: [UInt8]

  mutating func describe(
    _ action: String, _ kind: String, _ name: [UInt8], of app: [UInt8]?, before: JSONObject = [:], after: JSONObject
  ) {
    self.app = app
    self.action = Array(action.utf8)
    subject = Array("\(kind):".utf8) + name
    (self.before, self.after) = (before.line, after.line)
  }

  /// An operation on a key of several applications belongs to the whole fleet.
  mutating func describe(_ action: String, _ key: GatewayKey) {
    describe(
      action, "key", key.id, of: key.apps.count == 1 ? key.apps.first : nil,
      after: ["name": key.name, "apps": key.apps, "rights": key.rightNames])
  }

  public var json: JSONObject {
    [
      "event": "audit", "number": number, "at": Timestamp.text(at), "app": app, "actor": actor, "origin": origin,
      "action": action, "subject": subject, "reason": reason, "before": JSONRaw(before), "after": JSONRaw(after),
    ]
  }
}

extension Control {
  /// - Parameter now: Unix milliseconds; a mode that has ended is shown as running.
  func json(at now: Int64) -> JSONObject {
    let mode = mode(at: now)
    guard mode != .running else { return ["state": mode.rawValue, "rate": rate] }
    let discarded = discarded.flatMap { $0 >= since ?? 0 ? $0 : nil }
    return [
      "state": mode.rawValue, "since": since.map(Timestamp.text), "until": until.map(Timestamp.text), "by": actor,
      "reason": reason, "sender": JSONOptional(sender), "waiting": JSONOptional(waiting > 0 ? waiting : nil),
      "discarded": JSONOptional(discarded.map(Timestamp.text)), "rate": rate,
    ]
  }

  /// The same, behind the subject's name.
  public func namedJSON(at now: Int64) -> JSONObject { [subject.kind: subject.name] + json(at: now) }
}
