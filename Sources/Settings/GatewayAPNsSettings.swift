import Reactor

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
