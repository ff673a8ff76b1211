import Reactor

/// The doors that a gateway opens, at least one.
public struct GatewaySettings: Sendable {
  /// Where its figures are served, where a worker on the same machine has the place that `metrics` names.
  public var metrics: Endpoint?
  public var http: GatewayHTTPSettings?
  public var apns: GatewayAPNsSettings?

  init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    metrics = try reader.figures("metrics")
    http = reader.has("http") ? try GatewayHTTPSettings(reader.object("http")) : nil
    apns = reader.has("apns") ? try GatewayAPNsSettings(reader.object("apns")) : nil
    guard http != nil || apns != nil else { throw reader.error("http", "is missing, and apns as well: name at least one door") }
  }
}

/// The HTTP door.
public struct GatewayHTTPSettings: Sendable {
  public var listen: Endpoint
  /// Seconds for which a sender's result is waited for.
  public var wait: Int
  /// Seconds for which the same request without an `Idempotency-Key` is known again after its answer; 0 where each is one of its own.
  public var retransmission: Int
  /// Requests without an `Idempotency-Key` are one for all gateways of a registry as well.
  public var isShared: Bool
  /// A device may say who uses it, by its secret.
  public var deviceUsers: Bool
  /// Tokens that a sender names in groups and topics, and that nobody has registered, are registered.
  public var registersUnknown: Bool
  /// Certificate chain and key for TLS; nil for plain HTTP.
  public var identity: (certificate: Material, key: Material)?

  init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    listen = try reader.door("listen", "127.0.0.1:8080")
    wait = try reader.integer("wait", in: 0...300) ?? 5
    retransmission = try reader.integer("retransmission", in: 0...600) ?? 10
    isShared = try reader.flag("shared") ?? false
    deviceUsers = try reader.flag("deviceUsers") ?? true
    registersUnknown = try reader.flag("registerUnknown") ?? true
    identity = try reader.identity()
  }
}

extension ConfigurationReader {
  /// `host:port`, both: the host says who can come in.
  func door(_ key: String, _ example: String) throws(ConfigurationError) -> Endpoint {
    let text = try requiredString(key, for: "host:port, such as \(example)")
    guard let endpoint = try? Endpoint(parsing: text) else {
      throw error(key, "must be host:port, such as \(example); the host says who can come in")
    }
    return endpoint
  }

  /// Where figures are served; nil for nowhere.
  func figures(_ key: String) throws(ConfigurationError) -> Endpoint? {
    guard let text = try string(key) else { return nil }
    guard let endpoint = try? Endpoint(parsing: text, defaultPort: 9_464), UInt16(endpoint.host) == nil else {
      throw error(key, "must be host:port, such as 127.0.0.1:9464; the host says who can read the figures")
    }
    return endpoint
  }

  /// `certificate` and `key`, both or neither.
  func identity() throws(ConfigurationError) -> (certificate: Material, key: Material)? {
    switch (try material("certificate"), try material("key")) {
    case (let certificate?, let key?): return (certificate, key)
    case (nil, nil): return nil
    case (nil, _?): throw error("certificate", "is missing beside key")
    case (_?, nil): throw error("key", "is missing beside certificate")
    }
  }
}
