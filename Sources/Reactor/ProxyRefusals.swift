import Synchronization

/// The tunnels that proxies have refused to all links of a process.
public final class ProxyRefusals: Sendable {
  public static let shared = ProxyRefusals()

  private let counts = Mutex<[Int: Int]>([:])

  /// By the status of the proxy's answer; 0 for none.
  public var byStatus: [Int: Int] { counts.withLock(\.self) }

  func add(status: Int) { counts.withLock { $0[status, default: 0] += 1 } }
}
