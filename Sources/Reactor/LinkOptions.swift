/// The times of a link, in seconds, and its turn to connect.
public struct LinkOptions: Sendable {
  /// For resolving, connecting and the TLS handshake together.
  public var connectTimeout: Double
  /// How long sent bytes may stay unacknowledged, or the peer's window closed, before the kernel gives up
  /// (`TCP_USER_TIMEOUT`). A closed window counts even while the peer acknowledges the kernel's probes (seen on Linux 6),
  /// so a peer that stops reading on purpose, such as a broker under an alarm, needs 0: the kernel's own limit, about 15
  /// minutes of silence, with the machine's heartbeat in front of it.
  public var userTimeout: Double
  /// Where the link waits for its turn to connect; its time for that begins when it is let in.
  public var gate: DialGate?

  public init(connectTimeout: Double = 10, userTimeout: Double = 60, gate: DialGate? = nil) {
    self.connectTimeout = connectTimeout
    self.userTimeout = userTimeout
    self.gate = gate
  }
}
