/// A right of a gateway key for its applications.
public enum KeyRight: String, CaseIterable, Sendable {
  /// Send, and manage groups and topics of tokens.
  case send
  /// Change the registry: devices, users, groups, topics.
  case register
  /// Acknowledge on behalf of devices.
  case ack
  /// See the fleet.
  case view
  /// Control the fleet: pause, resume and the like.
  case operate
}

/// The registry's record of a gateway key, without the key itself.
public struct GatewayKey: Equatable, Sendable {
  /// Part of the key; identifies it to people.
  public var id: [UInt8]
  /// The name for people; nil if it has none.
  public var name: [UInt8]?
  /// SHA-256 of the key's secret.
  public var hash: [UInt8]
  public var apps: [[UInt8]]
  public var rights: Set<KeyRight>
  /// Requests per second; nil for no limit.
  public var rate: Int64?
  /// The sender of the application that the key's holder uses.
  public var sender: [UInt8]?
  /// The APNs environment of the holder's tokens.
  public var environment: DeviceEnvironment?
  /// Nil for a key in text form.
  public var account: GatewayAccount?
  /// Unix milliseconds.
  public var createdAt: Int64
  /// Accurate to about a minute.
  public var usedAt: Int64?
  public var revokedAt: Int64?

  /// Name and id, as records of operations name the key.
  public var title: [UInt8] { name.map { $0 + Array(" (".utf8) + id + Array(")".utf8) } ?? id }

  public var rightNames: [[UInt8]] { rights.map(\.rawValue).sorted().map { Array($0.utf8) } }

  public init(id: [UInt8], hash: [UInt8], apps: [[UInt8]], rights: Set<KeyRight>, rate: Int64? = nil, createdAt: Int64) {
    self.id = id
    self.hash = hash
    self.apps = apps
    self.rights = rights
    self.rate = rate
    self.createdAt = createdAt
  }
}

/// Data to verify a service account's assertions (RFC 7523 §3).
public struct GatewayAccount: Equatable, Sendable {
  /// PEM.
  public var publicKey: [UInt8]
  /// The token endpoint in the senders' configuration; the audience of their assertions.
  public var tokenURI: [UInt8]

  public init(publicKey: [UInt8], tokenURI: [UInt8]) {
    self.publicKey = publicKey
    self.tokenURI = tokenURI
  }
}
