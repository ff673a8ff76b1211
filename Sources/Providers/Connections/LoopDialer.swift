import Reactor
import Wire

/// Connects over sockets and TLS on a shard's event loop. All shards share a limit on simultaneous attempts to one host.
public final class LoopDialer: Dialer {
  private let loop: EventLoop

  public init(loop: EventLoop) { self.loop = loop }

  public func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    let options = LinkOptions(
      connectTimeout: target.timeout, limiter: .shared, proxy: target.proxy, addresses: target.addresses)
    let link = Link(
      loop: loop, machine: machine, to: Endpoint(host: target.host, port: target.port), tls: target.tls,
      serverName: target.serverName, options: options)
    link.start()
    return link
  }
}
