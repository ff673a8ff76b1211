import Settings

/// A way into the gateway. Confined to the loop's thread.
protocol Door: AnyObject {
  /// Takes over the applications and certificates of a configuration; where something can't be used, what it had before stays.
  func reload(_ configuration: Configuration) throws(ConfigurationError)
  /// When the certificate that it shows ends; nil where it shows none.
  var expiry: CertificateExpiry? { get }
  /// Ends who takes too long to say what he wants. To be called about once a second.
  func lookAround()
  /// Takes nothing new from now on.
  func drain()
  /// Nobody inside waits for anything.
  var isIdle: Bool { get }
  /// Ends every connection.
  func close()
}
