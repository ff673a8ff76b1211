import PushCore

/// Which of Apple's two services a token belongs to.
public enum DeviceEnvironment: UInt8, CaseIterable, Sendable {
  /// Not given: the app's configured environment.
  case unspecified = 0
  case production = 1
  case sandbox = 2

  public var name: String? {
    switch self {
    case .unspecified: nil
    case .production: "production"
    case .sandbox: "sandbox"
    }
  }
}

/// What is known of a device's registration.
public enum DeviceState: UInt8, CaseIterable, Sendable {
  case active = 0
  /// A provider refused the token in a way that a wrong setting can cause; still sent to. Becomes active by registering again.
  case suspect = 1
  /// The provider said that the app is gone, or it was unregistered; not sent to. Becomes active by registering again.
  case gone = 2
  /// It hasn't registered for longer than the configuration allows: broadcasts pass over it. Becomes active by registering again.
  case stale = 3
}

/// The fixed part of a device, as delivery needs it; its token and sender lie in the arena of its ``DeviceRows``.
public struct DeviceRow: Sendable {
  public let id: Int64
  /// The random half of the registration's id.
  public let salt: Int64
  /// Unix time in milliseconds at which the token was last registered.
  public let registeredAt: Int64
  fileprivate(set) var start: UInt32
  let tokenCount: UInt16
  let senderCount: UInt16
  public let platform: Platform
  public let environment: DeviceEnvironment
  public let state: DeviceState
  public let kind: TokenKind
  /// The registration named one of the app's senders.
  public var hasSender: Bool { senderCount > 0 }

  /// Whether a push for tokens of a kind goes to it. A push type is APNs' own, and means nothing to devices of FCM.
  func isMeant(by kind: TokenKind) -> Bool { self.kind == kind || platform == .fcm }
}

/// Whose a device is.
public struct DeviceOwner: Equatable, Sendable {
  public var installation: [UInt8]?
  /// The user's id.
  public var user: [UInt8]?
}

/// Devices in compact form: one array of rows, one of bytes, nothing allocated per device.
public struct DeviceRows: Sendable {
  public private(set) var rows: [DeviceRow] = []
  private var arena: [UInt8] = []

  public init() {}

  public var count: Int { rows.count }
  public var isEmpty: Bool { rows.isEmpty }
  public subscript(_ index: Int) -> DeviceRow { rows[index] }

  /// The provider's token.
  public func token(_ index: Int) -> ArraySlice<UInt8> {
    let row = rows[index]
    return arena[Int(row.start)..<Int(row.start) + Int(row.tokenCount)]
  }

  /// Which of the app's senders the token belongs to; empty when none was given.
  public func sender(_ index: Int) -> ArraySlice<UInt8> {
    let row = rows[index]
    let start = Int(row.start) + Int(row.tokenCount)
    return arena[start..<start + Int(row.senderCount)]
  }

  /// The canonical registration.
  public func registration(_ index: Int) -> [UInt8] { Self.registration(id: rows[index].id, salt: rows[index].salt) }

  /// The registration of a device's number and salt.
  public static func registration(id: Int64, salt: Int64) -> [UInt8] { RegistryKey(id: id, salt: salt).registration }

  mutating func reserve(_ count: Int) {
    rows.reserveCapacity(count)
    arena.reserveCapacity(count * 80)
  }

  mutating func append(contentsOf other: DeviceRows) {
    let offset = UInt32(truncatingIfNeeded: arena.count)
    arena += other.arena
    for row in other.rows {
      var moved = row
      moved.start += offset
      rows.append(moved)
    }
  }

  mutating func append(_ index: Int, of other: DeviceRows) {
    var row = other.rows[index]
    let bytes = other.arena[Int(row.start)..<Int(row.start) + Int(row.tokenCount) + Int(row.senderCount)]
    row.start = UInt32(truncatingIfNeeded: arena.count)
    arena += bytes
    rows.append(row)
  }

  /// - Parameter fill: appends the token's bytes, then the sender's, and gives the device whose these are.
  mutating func append(_ fill: (inout [UInt8], _ start: UInt32) -> DeviceRow) {
    let start = UInt32(truncatingIfNeeded: arena.count)
    rows.append(fill(&arena, start))
  }
}
