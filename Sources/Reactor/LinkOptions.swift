/// The timeouts of a link, in seconds, its limiter and its way to the peer.
public struct LinkOptions: Sendable {
  /// For resolving, connecting, the proxy's answer and the TLS handshake together.
  public var connectTimeout: Double
  /// How long sent bytes may stay unacknowledged, or the peer's window closed, before the kernel gives up (`TCP_USER_TIMEOUT`).
  /// A closed window counts even while the peer acknowledges probes (seen on Linux 6). A peer that stops reading on purpose,
  /// such as a broker under an alarm, needs 0: the kernel's limit of about 15 minutes, behind the machine's heartbeat.
  public var userTimeout: Double
  /// The link waits here for its turn to connect; `connectTimeout` begins after it.
  public var limiter: ConnectLimiter?
  /// A client connects to the peer through a tunnel of this proxy. The proxy resolves the peer's name.
  public var proxy: ProxyAddress?
  /// Addresses that a client may connect to. With a proxy, this is for a numeric peer only: the proxy chooses a name's address.
  public var addresses: AddressPolicy

  public init(
    connectTimeout: Double = 10, userTimeout: Double = 60, limiter: ConnectLimiter? = nil, proxy: ProxyAddress? = nil,
    addresses: AddressPolicy = .any
  ) {
    self.connectTimeout = connectTimeout
    self.userTimeout = userTimeout
    self.limiter = limiter
    self.proxy = proxy
    self.addresses = addresses
  }
}
