/// What the holder of a gateway's key may do for its applications.
public enum KeyRight: String, CaseIterable, Sendable {
  /// Send, and make groups and topics of tokens.
  case send
  /// Change the registry: devices, users, groups, topics.
  case register
  /// Acknowledge in devices' names.
  case ack
}

/// A key to the gateway as the registry keeps it: never the key itself.
public struct GatewayKey: Equatable, Sendable {
  /// Stands in the key, and names it to people.
  public var id: [UInt8]
  /// SHA-256 of the key's secret.
  public var hash: [UInt8]
  public var apps: [[UInt8]]
  public var rights: Set<KeyRight>
  /// Requests a second; nil for any number.
  public var rate: Int64?
  /// Which of the application's senders its holder is.
  public var sender: [UInt8]?
  /// Which APNs its holder's tokens are of.
  public var environment: DeviceEnvironment?
  /// Nil for a key that is shown as a text.
  public var account: GatewayAccount?
  /// Unix milliseconds.
  public var createdAt: Int64
  /// To about a minute.
  public var usedAt: Int64?
  public var revokedAt: Int64?

  public init(id: [UInt8], hash: [UInt8], apps: [[UInt8]], rights: Set<KeyRight>, rate: Int64? = nil, createdAt: Int64) {
    self.id = id
    self.hash = hash
    self.apps = apps
    self.rights = rights
    self.rate = rate
    self.createdAt = createdAt
  }
}

/// What a service account's assertions are judged by (RFC 7523 §3).
public struct GatewayAccount: Equatable, Sendable {
  /// PEM.
  public var publicKey: [UInt8]
  /// The token endpoint as its senders know it, for which their assertions are.
  public var tokenURI: [UInt8]

  public init(publicKey: [UInt8], tokenURI: [UInt8]) {
    self.publicKey = publicKey
    self.tokenURI = tokenURI
  }
}
