import Reactor
import Wire

/// The real thing: connections over sockets and TLS, and timers, on a shard's event loop.
public final class LoopSurroundings: Dialer, PoolClock {
  private let loop: EventLoop

  public init(loop: EventLoop) { self.loop = loop }

  public var now: MonotonicTime { loop.now }
  public var wallClock: Int64 { loop.wallClock }

  public func schedule(at time: MonotonicTime, _ body: @escaping () -> Void) { loop.schedule(at: time, body) }

  public func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    let link = Link(
      loop: loop, machine: machine, to: Endpoint(host: target.host, port: target.port), tls: target.tls,
      serverName: target.serverName, options: LinkOptions(connectTimeout: target.timeout))
    link.start()
    return link
  }
}
