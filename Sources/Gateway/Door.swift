import Settings

/// An entrance of the gateway, such as the HTTP server. Confined to the loop's thread.
protocol Door: AnyObject {
  /// Applies the applications and certificates of a configuration. After an error the previous ones stay in use.
  func reload(_ configuration: Configuration) throws(ConfigurationError)
  /// The expiry of the door's certificate; nil if it has none.
  var expiry: CertificateExpiry? { get }
  /// Ends connections that are too slow. Called about once a second.
  func lookAround()
  func drain()
  /// True if no request waits for an answer.
  var isIdle: Bool { get }
  func close()
}
