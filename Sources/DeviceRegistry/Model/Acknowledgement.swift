import PushCore

/// What a device has said of a message, or of its badge (docs/schema/acknowledgement.schema.json).
public struct Acknowledgement: Equatable, Sendable {
  public enum Operation: Equatable, Sendable {
    case received(MessageReference)
    case read(MessageReference, BadgeRule)
    /// The counter is forced, or cleared by 0.
    case badge(Int64)
  }

  public var app: [UInt8]
  public var device: DeviceReference
  public var operation: Operation
  /// When the device did so, in unix milliseconds.
  public var at: Int64
  /// Tells a forced badge from any other, so that it is applied once however often it is delivered; nil where nothing does.
  public var occasion: [UInt8]?
  /// Whose device it is said to be: that of another user is unknown. Nil where nothing is said.
  public var user: [UInt8]?
  /// Its message was delivered before: it may have been noted without its receipt.
  public var isRedelivered = false
  /// The registry keeps each message of its application.
  public var isMessageKept = false

  public init(app: [UInt8], device: DeviceReference, operation: Operation, at: Int64, occasion: [UInt8]? = nil) {
    self.app = app
    self.device = device
    self.operation = operation
    self.at = at
    self.occasion = occasion
  }
}

/// How an acknowledgement names a message.
public enum MessageReference: Equatable, Sendable {
  case id([UInt8])
  /// By what the `mps` object of the push said (rule UP-19): its key, or the numbers between which that is.
  case key(ClosedRange<Int64>)
}

/// What reading a message makes of the device's badge counter (rules UP-11 to UP-13).
public enum BadgeRule: Equatable, Sendable {
  /// One less, and never less than none.
  case keep
  case reset
  case update(Int64)
}

/// What became of an acknowledgement.
public enum AcknowledgementOutcome: Equatable, Sendable {
  /// Noted now.
  case noted(Receipt?)
  /// It was noted before. The receipt is that of the first time, for one that was redelivered.
  case repeated(Receipt?)
  /// Names no device that is known, or not as that user's, or a message that wasn't sent to it as far as the registry knows.
  case unknown
}

/// What backends are told of a noted acknowledgement.
public struct Receipt: Equatable, Sendable {
  public enum Event: String, Sendable {
    case received = "Received"
    case read = "Read"
  }

  public var event: Event
  public var app: [UInt8]
  public var messageID: [UInt8]
  public var registration: [UInt8]
  public var user: [UInt8]?
  /// Unix milliseconds.
  public var at: Int64
  /// The device's counter afterwards.
  public var badge: Int64
}

/// What a push asks of the badge counters of its devices.
public struct BadgeCount: Equatable, Sendable {
  public enum Rule: Equatable, Sendable {
    /// One more for each device.
    case up
    case set(Int64)
    /// What one more would be; nothing is counted.
    case look
  }

  public enum Device: Equatable, Sendable {
    /// By its number in the registry.
    case number(Int64)
    /// By a provider's token, which the registry may not know.
    case token(Platform, [UInt8])
  }

  public var app: [UInt8]
  public var messageID: [UInt8]
  public var rule: Rule
  public var devices: [Device]

  public init(app: [UInt8], messageID: [UInt8], rule: Rule, devices: [Device]) {
    self.app = app
    self.messageID = messageID
    self.rule = rule
    self.devices = devices
  }
}
