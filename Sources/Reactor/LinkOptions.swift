/// The times of a link, in seconds.
public struct LinkOptions: Sendable {
  /// For resolving, connecting and the TLS handshake together.
  public var connectTimeout: Double
  /// How long sent bytes may stay unacknowledged, or the peer's window closed, before the kernel gives up
  /// (`TCP_USER_TIMEOUT`). A peer that pauses for longer on purpose, such as a broker under an alarm, needs a larger one;
  /// 0 leaves it to the kernel's own retransmission limit (about 15 minutes).
  public var userTimeout: Double

  public init(connectTimeout: Double = 10, userTimeout: Double = 60) {
    self.connectTimeout = connectTimeout
    self.userTimeout = userTimeout
  }
}
