/// Something that operators control.
public enum ControlSubject: Hashable, Sendable {
  case app([UInt8])
  /// A lane: its queue's name without prefix, such as `send.normal`.
  case lane([UInt8])
  /// A credential or a sender of an application: `<app>/fcm`, `<app>/senders/<sender>` or `<app>/senders/<sender>/fcm`.
  case credential([UInt8])
  /// A webhook: `<app>/<name>`.
  case webhook([UInt8])

  /// The application; nil for a lane.
  public var app: [UInt8]? {
    switch self {
    case .app(let id): id
    case .credential(let name), .webhook(let name): name.firstIndex(of: UInt8(ascii: "/")).map { Array(name[..<$0]) }
    case .lane: nil
    }
  }

  public var kind: String {
    switch self {
    case .app: "app"
    case .lane: "lane"
    case .credential: "credential"
    case .webhook: "webhook"
    }
  }

  public var name: [UInt8] {
    switch self {
    case .app(let name), .lane(let name), .credential(let name), .webhook(let name): name
    }
  }

  public var text: String { String(decoding: name, as: UTF8.self) }

  /// Why nothing of a running subject can be discarded.
  public var refusalOfDiscard: String { "\(text) is not paused, so workers send what waits: pause it first" }

  init?(kind: [UInt8], name: [UInt8]) {
    let subjects: [Self] = [.app(name), .lane(name), .credential(name), .webhook(name)]
    guard let subject = subjects.first(where: { kind.elementsEqual($0.kind.utf8) }) else { return nil }
    self = subject
  }
}

/// The settings of operators for a subject. Every worker reads them once a second.
public struct Control: Equatable, Sendable {
  public enum Mode: String, CaseIterable, Sendable {
    case running
    /// Waiting requests are sent, and new ones are refused.
    case draining
    /// Requests wait: those of an application in its hold queue, those for a credential on the ladder, those of a lane in the lane.
    case paused
  }

  public var subject: ControlSubject
  public var mode = Mode.running
  /// When the mode ends by itself, in Unix milliseconds; nil for never.
  public var until: Int64?
  public var reason: [UInt8]?
  /// The operator who set the mode.
  public var actor: [UInt8]?
  /// When the mode was set, in Unix milliseconds.
  public var since: Int64?
  /// The fleet's limit of pushes per second; nil for none.
  public var rate: Int64?
  /// Pushes that waited for the credential at this time aren't sent, whatever the mode is now, in Unix milliseconds.
  public var discarded: Int64?
  /// The sender that the order is for, if this is one of its credentials; nil if the order is for the subject itself. Not stored.
  public internal(set) var sender: [UInt8]?
  /// The number of pushes that wait for a paused credential. Not stored.
  public var waiting = 0

  public init(_ subject: ControlSubject) { self.subject = subject }

  public func mode(at now: Int64) -> Mode { until.map { now >= $0 } == true ? .running : mode }

  /// Whether discarded pushes may still wait: no request lives longer than four weeks.
  public func discards(at now: Int64) -> Bool { discarded.map { now < $0 + 28 * 86_400_000 } == true }

  /// This order and another one for the same credential. A pause counts more than a drain, and this order more than an equal one.
  public func joined(_ other: Control?, at now: Int64) -> Control {
    guard let other else { return self }
    func rank(_ control: Control) -> Int { Mode.allCases.firstIndex(of: control.mode(at: now)) ?? 0 }
    var joined = rank(other) > rank(self) ? other : self
    joined.discarded = [discarded, other.discarded].compactMap(\.self).max()
    return joined
  }
}

extension [Control] {
  /// The order in force for a subject. A sender's order also counts for its credentials.
  /// - Parameter now: Unix milliseconds.
  public func inForce(for subject: ControlSubject, at now: Int64) -> Control {
    let own = first { $0.subject == subject } ?? Control(subject)
    guard case .credential(let name) = subject else { return own }
    let sender = first {
      guard case .credential(let other) = $0.subject else { return false }
      return name.starts(with: other + [UInt8(ascii: "/")])
    }
    var control = own.joined(sender, at: now)
    if control.subject != subject { control.sender = control.subject.name }
    control.subject = subject
    return control
  }
}
