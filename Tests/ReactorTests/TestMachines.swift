@testable import Reactor
import TLS
import TestSupport
import Wire

/// Sends what the test puts into `outgoing`, keeps what comes in.
final class Peer: Machine {
  weak var transport: (any Transport)?
  var outgoing: [UInt8] = []
  var incoming: [UInt8] = []
  var receivedCount = 0
  var ends: [TransportEnd] = []
  var isOpen = false
  var isFinished = false
  var deadline = MonotonicTime.distantFuture
  var deadlinesReached: [MonotonicTime] = []
  /// Sends back what it gets.
  var isEcho = false
  var keepsIncoming = true
  var whenReceiving: ((Peer) -> Void)?
  var whenOpened: ((Peer) -> Void)?
  var whenWriting: (() -> Void)?
  /// True while the link is in a call to the machine: a second one would be a re-entrance.
  private(set) var reentrances = 0
  private var depth = 0
  private var sent = 0

  init(sending text: [UInt8] = [], isEcho: Bool = false) {
    outgoing = text
    self.isEcho = isEcho
  }

  private func call(_ body: () -> Void) {
    if depth > 0 { reentrances += 1 }
    depth += 1
    body()
    depth -= 1
  }

  func transportOpened(at now: MonotonicTime) {
    call {
      isOpen = true
      whenOpened?(self)
    }
  }

  func receive(_ bytes: RawSpan, at now: MonotonicTime) {
    call {
      receivedCount += bytes.byteCount
      if keepsIncoming || isEcho {
        bytes.withUnsafeBytes {
          if keepsIncoming { incoming.append(contentsOf: $0) }
          if isEcho { outgoing.append(contentsOf: $0) }
        }
      }
      whenReceiving?(self)
    }
  }

  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) { call { ends.append(reason) } }

  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
    whenWriting?()
    call {
      let count = min(outgoing.count - sent, 65536)
      buffer.append(outgoing[sent..<sent + count])
      sent += count
      if sent == outgoing.count {
        outgoing.removeAll()
        sent = 0
      }
    }
  }

  func deadlineReached(at now: MonotonicTime) {
    call {
      deadlinesReached.append(now)
      deadline = .distantFuture
    }
  }

  func send(_ bytes: [UInt8]) {
    outgoing += bytes
    transport?.outputReady()
  }
}

/// A loop with a listener whose accepted machines are kept, and the two TLS contexts that go together.
final class Network {
  let loop: EventLoop
  let listener: Listener
  var accepted: [Peer] { box.peers }
  private final class Box { var peers: [Peer] = [] }
  private let box: Box

  init(tls: TLSServerContext? = nil, make: @escaping () -> Peer = { Peer(isEcho: true) }) throws {
    loop = try EventLoop()
    let box = Box()
    self.box = box
    listener = try Listener(loop: loop, host: "127.0.0.1", port: 0, tls: tls) { _ in
      let peer = make()
      box.peers.append(peer)
      return peer
    }
  }

  func connect(_ peer: Peer, tls: TLSClientContext? = nil, serverName: String? = nil) -> Link {
    let link = Link(loop: loop, machine: peer, to: listener.endpoint, tls: tls, serverName: serverName)
    link.start()
    return link
  }

  func server() throws -> Peer { box.peers[0] }
}

/// Whether TLS is used; for tests that hold for both.
enum Security: CaseIterable, Sendable {
  case plain, tls

  func server() throws -> TLSServerContext? {
    guard self == .tls else { return nil }
    let certificates = try TestCertificates.make()
    return try TLSServerContext(certificate: certificates.server, key: certificates.serverKey, alpn: ["h2"])
  }

  func client() throws -> TLSClientContext? {
    guard self == .tls else { return nil }
    return try TLSClientContext(ca: TestCertificates.make().authority, alpn: ["h2"])
  }
}
