import TLS
import Wire

/// Accepts connections and makes a machine for each. For the gateway and the simulators.
public final class Listener {
  /// The actual address, also if port 0 was requested.
  public let endpoint: Endpoint
  public var port: UInt16 { endpoint.port }

  private unowned let loop: EventLoop
  private var descriptor: Descriptor?
  private let raw: Int32
  /// For connections accepted from now on.
  public var tls: TLSServerContext?
  private let options: LinkOptions
  private let accept: (Endpoint) -> (any Machine)?
  private var watch: Watch?
  private var resting: TimerToken?
  private var exhaustion = Backoff(base: 0.05, cap: 1)
  private var links: [WeakLink] = []
  /// The number of links at which ended links are removed.
  private var sweepMark = 64

  /// Listens until `close`; the loop owns the listener meanwhile.
  /// - Parameters:
  ///   - host: a numeric address, or a name whose first address is used (blocks while resolving).
  ///   - port: 0 for any free port.
  ///   - accept: makes the machine for a connection from the given address; nil drops the connection.
  public init(
    loop: EventLoop, host: String, port: UInt16, tls: TLSServerContext? = nil, options: LinkOptions = LinkOptions(),
    accept: @escaping (Endpoint) -> (any Machine)?
  ) throws {
    let address = try Resolver.addresses(Endpoint(host: host, port: port)).get()[0]
    self.loop = loop
    self.tls = tls
    self.options = options
    self.accept = accept
    let listening = try Socket.listening(on: address)
    raw = listening.raw
    endpoint = Socket.localAddress(raw).endpoint
    descriptor = consume listening
    watch = try loop.watch(raw, .input, self)
    loop.own(self)
  }

  public func close() {
    if let watch { loop.unwatch(watch, raw) }
    watch = nil
    descriptor = nil
    if let resting { loop.cancel(resting) }
    resting = nil
    loop.disown(self)
  }

  public func closeConnections() {
    for entry in links { entry.link?.close() }
    links = []
  }

  private func admit(_ raw: Int32, _ peer: SocketAddress) {
    let connection = Descriptor(adopting: raw)
    let peer = peer.endpoint
    guard let machine = accept(peer) else { return }
    let link = Link(loop: loop, machine: machine, accepted: connection, from: peer, tls: tls, options: options)
    if links.count >= sweepMark {
      links.removeAll { $0.link?.end != nil || $0.link == nil }
      sweepMark = max(64, 2 * links.count)
    }
    links.append(WeakLink(link: link))
    link.start()
  }

  /// Pauses accepting when out of descriptors or memory: the waiting connection would make the loop spin.
  private func rest() {
    guard let watch else { return }
    try? loop.change(watch, raw, [])
    resting = loop.schedule(after: exhaustion.next()) { [unowned self] in
      resting = nil
      guard let watch = self.watch else { return }
      try? loop.change(watch, raw, .input)
    }
  }

  private struct WeakLink { weak var link: Link? }
  private static let acceptsPerTurn = 64
}

extension Listener: EventSource {
  func ready(_ readiness: Readiness) {
    for _ in 0..<Self.acceptsPerTurn where watch != nil {
      do throws(SystemError) {
        guard let (raw, peer) = try Socket.accepted(raw) else { return }
        exhaustion.reset()
        admit(raw, peer)
      } catch {
        return rest()
      }
    }
  }
}
