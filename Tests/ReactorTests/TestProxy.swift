import Testing
import Wire

@testable import Reactor

/// An HTTP proxy in the loop of a network. Its tunnels lead to the network's listener, whatever the request names.
final class TestProxy {
  enum Manner {
    case atOnce, byteByByte
    /// Hangs up after the answer.
    case closing
  }

  var requests: [String] { tunnels.requests }
  private let tunnels: Tunnels
  private let listener: Listener

  init(_ network: Network, answer: String = "HTTP/1.1 200 Connection established\r\n\r\n", _ manner: Manner = .atOnce) throws {
    let tunnels = Tunnels(network, Array(answer.utf8), manner)
    self.tunnels = tunnels
    listener = try Listener(loop: network.loop, host: "127.0.0.1", port: 0) { _ in tunnels.accept() }
  }

  /// - Parameter login: the user and password, with `@` behind them.
  func address(_ login: String = "") throws -> ProxyAddress {
    try #require(ProxyAddress("http://\(login)127.0.0.1:\(listener.port)"))
  }

  func close() { listener.close() }
  func cut() { tunnels.cut() }
}

private final class Tunnels {
  private let network: Network
  private let answer: [UInt8]
  private let manner: TestProxy.Manner
  private var peers: [Peer] = []
  private(set) var requests: [String] = []

  init(_ network: Network, _ answer: [UInt8], _ manner: TestProxy.Manner) {
    (self.network, self.answer, self.manner) = (network, answer, manner)
  }

  func accept() -> Peer {
    let near = Peer()
    near.whenReceiving = { [unowned self] in request($0) }
    peers.append(near)
    return near
  }

  private func request(_ near: Peer) {
    guard near.incoming.suffix(4) == [13, 10, 13, 10] else { return }
    requests.append(String(decoding: near.incoming, as: UTF8.self))
    near.incoming = []
    near.whenReceiving = nil
    if answer.starts(with: "HTTP/1.1 200".utf8), answer.suffix(4) == [13, 10, 13, 10] { lead(near) }
    respond(near, answer[...])
  }

  private func lead(_ near: Peer) {
    let far = Peer()
    peers.append(far)
    far.whenReceiving = { [unowned near] in Self.move(from: $0, to: near) }
    near.whenReceiving = { [unowned far] in Self.move(from: $0, to: far) }
    _ = network.connect(far)
  }

  private static func move(from one: Peer, to other: Peer) {
    other.send(one.incoming)
    one.incoming = []
  }

  private func respond(_ near: Peer, _ rest: ArraySlice<UInt8>) {
    let count = manner == .byteByByte ? min(rest.count, 1) : rest.count
    near.send(Array(rest.prefix(count)))
    if count < rest.count {
      network.loop.schedule(after: 0.001) { [unowned self] in respond(near, rest.dropFirst(count)) }
    } else if manner == .closing {
      near.isFinished = true
      near.transport?.outputReady()
    }
  }

  func cut() { for peer in peers { peer.transport?.close() } }
}
