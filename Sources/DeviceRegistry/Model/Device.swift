import PushCore

public enum DeviceEnvironment: UInt8, CaseIterable, Sendable {
  /// Not given; the app's configured environment applies.
  case unspecified = 0
  case production = 1
  case sandbox = 2

  public var name: String? { self == .unspecified ? nil : "\(self)" }
}

public enum DeviceState: UInt8, CaseIterable, Sendable {
  case active = 0
  /// The token was refused for a reason that a wrong setting can cause. Still sent to. Becomes active by registering again.
  case suspect = 1
  /// The app was uninstalled (according to the provider) or unregistered. Not sent to. Becomes active by registering again.
  case gone = 2
  /// Not registered for longer than the configuration allows. Broadcasts skip it. Becomes active by registering again.
  case stale = 3
}

/// The fixed-size part of a device for delivery. Its token and sender are in the arena of its ``DeviceRows``.
public struct DeviceRow: Sendable {
  public let id: Int64
  /// The random half of the registration id.
  public let salt: Int64
  /// When the token was last registered, in Unix milliseconds.
  public let registeredAt: Int64
  fileprivate(set) var start: UInt32
  let tokenCount: UInt16
  let senderCount: UInt16
  public let platform: Platform
  public let environment: DeviceEnvironment
  public let state: DeviceState
  public let kind: TokenKind
  /// True if the registration named a sender of the app.
  public var hasSender: Bool { senderCount > 0 }

  /// True if a push for this token kind goes to the device. Only tokens of APNs have kinds.
  func isMeant(by kind: TokenKind) -> Bool { self.kind == kind || platform != .apns }
}

public struct DeviceOwner: Equatable, Sendable {
  public var installation: [UInt8]?
  public var user: [UInt8]?
}

/// Devices in compact form: an array of rows and an array of bytes, without an allocation per device.
public struct DeviceRows: Sendable {
  public private(set) var rows: [DeviceRow] = []
  private var arena: [UInt8] = []

  public init() {}

  public var count: Int { rows.count }
  public subscript(_ index: Int) -> DeviceRow { rows[index] }

  public func token(_ index: Int) -> ArraySlice<UInt8> {
    let row = rows[index]
    return arena[Int(row.start)..<Int(row.start) + Int(row.tokenCount)]
  }

  /// The sender of the app that the token belongs to; empty if none was given.
  public func sender(_ index: Int) -> ArraySlice<UInt8> {
    let row = rows[index]
    let start = Int(row.start) + Int(row.tokenCount)
    return arena[start..<start + Int(row.senderCount)]
  }

  public func registration(_ index: Int) -> [UInt8] { Self.registration(id: rows[index].id, salt: rows[index].salt) }

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

  /// - Parameter fill: appends the bytes of token and sender, and returns the row.
  mutating func append(_ fill: (inout [UInt8], _ start: UInt32) -> DeviceRow) {
    let start = UInt32(truncatingIfNeeded: arena.count)
    rows.append(fill(&arena, start))
  }
}
