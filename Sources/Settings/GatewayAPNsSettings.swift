import Reactor

/// The door for senders of APNs' binary interface.
public struct GatewayAPNsSettings: Sendable {
  public var listen: Endpoint
  /// Where the feedback service listens; nil for nowhere.
  public var feedback: Endpoint?
  /// Tokens that APNs calls bad are on the feedback service's list too.
  public var listsBadTokens: Bool
  public var certificate: Material
  public var key: Material
  /// Who signs the senders' certificates; nil where `app` says whom they send to.
  public var clients: Material?
  public var app: String?

  init(_ reader: ConfigurationReader) throws(ConfigurationError) {
    listen = try reader.door("listen", "127.0.0.1:2195")
    feedback = reader.has("feedback") ? try reader.door("feedback", "127.0.0.1:2196") : nil
    listsBadTokens = try reader.flag("badTokens") ?? false
    guard let identity = try reader.identity() else {
      throw reader.error("certificate", "is missing: senders of the binary interface speak TLS")
    }
    (certificate, key) = identity
    clients = try reader.material("clients")
    app = try reader.string("app")
    guard (clients == nil) != (app == nil) else {
      throw reader.error(
        "clients", "or app is to be given, one of them: who signs the senders' certificates, or whose door it is")
    }
  }
}
