import Reactor

/// The gateway's listeners. There is at least one.
public struct GatewaySettings: Sendable {
  /// The address of the gateway's metrics; nil for the address of the setting `metrics`.
  public var metrics: Endpoint?
  public var http: GatewayHTTPSettings?
  public var apns: GatewayAPNsSettings?
  /// True for `pushfleet console`: the HTTP listener serves operators only, and there are no metrics.
  public var isConsole = false

  init(_ reader: ConfigurationReader) {
    metrics = reader.figures("metrics")
    http = reader.has("http") ? GatewayHTTPSettings(reader.object("http")) : nil
    apns = reader.has("apns") ? GatewayAPNsSettings(reader.object("apns")) : nil
    if http == nil, apns == nil { reader.report("http", "is missing, and apns as well: name at least one door") }
  }

  init(console: GatewayHTTPSettings) {
    http = console
    isConsole = true
  }
}

public struct GatewayHTTPSettings: Sendable {
  public var listen: Endpoint
  /// Seconds to wait for a sender's result.
  public var wait: Int
  /// Seconds after the answer in which a repeated request without `Idempotency-Key` is recognised; 0 to treat each as new.
  public var retransmission: Int
  /// True if requests without `Idempotency-Key` are deduplicated across all gateways of a registry.
  public var isShared: Bool
  /// True if a device may set its user, authenticated by its secret.
  public var deviceUsers: Bool
  /// True if unregistered tokens that a sender names in groups and topics are registered.
  public var registersUnknown: Bool
  /// Certificate chain and key for TLS; nil for plain HTTP.
  public var identity: (certificate: Material, key: Material)?
  /// Nil if users of the console log in with keys only.
  public var login: ProxyLoginSettings?

  init(_ reader: ConfigurationReader) {
    listen = reader.door("listen", "127.0.0.1:8080")
    wait = reader.number("wait")
    retransmission = reader.number("retransmission")
    isShared = reader.flag("shared")
    deviceUsers = reader.flag("deviceUsers")
    registersUnknown = reader.flag("registerUnknown")
    identity = reader.identity()
    login = reader.has("login") ? ProxyLoginSettings(reader.object("login")) : nil
  }

  /// For operators only.
  init(listen: Endpoint, identity: (certificate: Material, key: Material)?, login: ProxyLoginSettings?) {
    self.listen = listen
    (self.identity, self.login) = (identity, login)
    // For tests of requests.
    (wait, retransmission) = (5, 0)
    (isShared, deviceUsers, registersUnknown) = (false, false, false)
  }
}

extension ConfigurationReader {
  /// A listener's `host:port`. The host is required, because it decides which machines can connect.
  func door(_ key: String, _ example: String) -> Endpoint {
    let text = requiredString(key, for: "host:port, such as \(example)")
    if let endpoint = try? Endpoint(parsing: text) { return endpoint }
    report(key, "must be host:port, such as \(example); the host says who can come in")
    return Endpoint(host: "", port: 0)
  }

  /// The address that serves metrics; nil if the setting is missing.
  func figures(_ key: String) -> Endpoint? {
    guard let text = string(key) else { return nil }
    if let endpoint = try? Endpoint(parsing: text, defaultPort: 9_464), UInt16(endpoint.host) == nil { return endpoint }
    report(key, "must be host:port, such as 127.0.0.1:9464; the host says who can read the figures")
    return nil
  }

  /// `certificate` and `key`; nil if both are missing. One without the other is an error.
  func identity() -> (certificate: Material, key: Material)? {
    let (certificate, key) = (material("certificate"), material("key"))
    guard has("certificate") || has("key") else { return nil }
    if certificate == nil { report("certificate", "is missing beside key") }
    if key == nil { report("key", "is missing beside certificate") }
    return (certificate ?? .missing, key ?? .missing)
  }
}

/// The listener for APNs' binary interface.
public struct GatewayAPNsSettings: Sendable {
  public var listen: Endpoint
  /// The address of the feedback service; nil if it is off.
  public var feedback: Endpoint?
  /// True if the feedback service also lists tokens that APNs calls bad.
  public var listsBadTokens: Bool
  public var certificate: Material
  public var key: Material
  /// The CA of the senders' certificates; nil if `app` names the application.
  public var clients: Material?
  public var app: String?

  init(_ reader: ConfigurationReader) {
    listen = reader.door("listen", "127.0.0.1:2195")
    feedback = reader.has("feedback") ? reader.door("feedback", "127.0.0.1:2196") : nil
    listsBadTokens = reader.flag("badTokens")
    let identity = reader.identity()
    if identity == nil { reader.report("certificate", "is missing: senders of the binary interface speak TLS") }
    // An empty text can be read, so only the missing certificate is reported.
    (certificate, key) = identity ?? (.missing, .text(""))
    let authorities = reader.material("clients")
    app = reader.string("app")
    clients = app == nil ? authorities : nil
    if (authorities == nil) == (app == nil) {
      reader.report(
        "clients", "or app must be set, but not both: the CA of the senders' certificates, or the application of all senders")
    }
  }
}
