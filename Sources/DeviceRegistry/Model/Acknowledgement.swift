import PushCore

/// A device's statement about a message or its badge (docs/schema/acknowledgement.schema.json).
public struct Acknowledgement: Equatable, Sendable {
  public enum Operation: Equatable, Sendable {
    case received(MessageReference)
    case read(MessageReference, BadgeRule)
    /// Sets the counter; 0 clears it.
    case badge(Int64)

    /// The event of the receipt; nil for a badge.
    var event: Receipt.Event? {
      switch self {
      case .received: .received
      case .read: .read
      case .badge: nil
      }
    }
  }

  public var app: [UInt8]
  public var device: DeviceReference
  public var operation: Operation
  /// When the device acknowledged, in Unix milliseconds.
  public var at: Int64
  /// Identifies a forced badge, so that repeated deliveries apply it only once; nil if it can't be identified.
  public var occasion: [UInt8]?
  /// The stated user of the device; nil if none is stated. If the device belongs to another user, it counts as unknown.
  public var user: [UInt8]?
  /// True if its message was delivered before. It may be stored without its receipt having been published.
  public var isRedelivered = false
  /// True if the registry keeps each message of the application.
  public var isMessageKept = false
}

public enum MessageReference: Equatable, Sendable {
  case id([UInt8])
  /// By the key from the push's `mps` object (rule UP-19), or by the range that contains the key.
  case key(ClosedRange<Int64>)
}

/// The effect of reading a message on the device's badge counter (rules UP-11 to UP-13).
public enum BadgeRule: Equatable, Sendable {
  /// Decreases the counter by one, down to 0.
  case keep
  case reset
  case update(Int64)
}

public enum AcknowledgementOutcome: Equatable, Sendable {
  case noted(Receipt?)
  /// Already stored before. For a redelivered one, the receipt is that of the first time.
  case repeated(Receipt?)
  /// The device is unknown or belongs to another user, or the message wasn't sent to it as far as the registry knows.
  case unknown
}

/// The message to backends about a stored acknowledgement.
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
  public var badge: Int64
}

/// A push's request to the badge counters of its devices.
public final class BadgeCount: Sendable {
  public enum Rule: Equatable, Sendable {
    case up
    case set(Int64)
    /// Returns the increased value without storing it.
    case look
  }

  public enum Device: Equatable, Sendable {
    case number(Int64)
    /// By provider token, which may be unknown to the registry.
    case token(Platform, [UInt8])
  }

  /// A page of a campaign.
  public struct Page: Hashable, Sendable {
    let campaign: [UInt8]
    let number: Int64

    public init(campaign: [UInt8], number: Int64) {
      self.campaign = campaign
      self.number = number
    }
  }

  public let app: [UInt8]
  public let messageID: [UInt8]
  public let rule: Rule
  public let devices: [Device]
  /// The page that has all the devices; nil for a request without a campaign.
  public let page: Page?

  public init(app: [UInt8], messageID: [UInt8], rule: Rule, devices: [Device], page: Page? = nil) {
    self.app = app
    self.messageID = messageID
    self.rule = rule
    self.devices = devices
    self.page = page
  }
}
