import Reactor
import Wire

/// Connections over sockets and TLS, on a shard's event loop; few at a time to one host, whichever shard makes them.
public final class LoopDialer: Dialer {
  private let loop: EventLoop

  public init(loop: EventLoop) { self.loop = loop }

  public func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    let link = Link(
      loop: loop, machine: machine, to: Endpoint(host: target.host, port: target.port), tls: target.tls,
      serverName: target.serverName, options: LinkOptions(connectTimeout: target.timeout, gate: .shared))
    link.start()
    return link
  }
}
