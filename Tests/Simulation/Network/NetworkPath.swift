import Wire

/// A connection between two participants, with its latency, slicing and faults.
final class NetworkPath {
  /// Bytes under way in one direction before the sender must wait.
  static let window = 256 * 1024

  let name: String
  let address: String
  private unowned let network: Network
  private(set) var client: NetworkEnd?
  private(set) var server: NetworkEnd?
  /// One-way latency in seconds.
  private let latency: Double
  /// Bytes are lost in both directions, and neither end notices.
  var isDead = false
  var stalledUntil = MonotonicTime(nanoseconds: 0)

  init(_ network: Network, name: String, address: String, latency: Double) {
    self.network = network
    self.name = name
    self.address = address
    self.latency = latency
  }

  func attach(client: NetworkEnd) { self.client = client }
  func attach(server: NetworkEnd) { self.server = server }

  func other(_ end: NetworkEnd) -> NetworkEnd? { end === client ? server : client }

  func carry(_ segment: NetworkEnd.Segment, from end: NetworkEnd, at now: MonotonicTime) {
    guard !isDead else { return }
    if case .bytes(let bytes) = segment { network.noteCarried(bytes.count, toServer: end === client) }
    other(end)?.send(segment, arriving: arrival(at: now))
  }

  /// Arrival time of data sent now. Whole milliseconds, so that data sent together arrives together.
  func arrival(at now: MonotonicTime) -> MonotonicTime {
    let millisecond: Int64 = 1_000_000
    let time = now.advanced(bySeconds: latency).nanoseconds
    return max(MonotonicTime(nanoseconds: (time / millisecond + 1) * millisecond), stalledUntil)
  }

  /// Cuts the connection. Data on its way is lost.
  func cut(at now: MonotonicTime) {
    for end in [client, server] {
      guard let end, !end.isOver else { continue }
      end.dropArriving()
      end.send(.ended(.failed("connection reset")), arriving: now)
    }
  }

  func cut(_ bytes: [UInt8]) -> [[UInt8]] { network.slice(bytes) }

  var isOver: Bool { client?.isOver != false && server?.isOver != false }
}
