import Glibc
import Wire

/// Who wants the connection; exactly one of these is called, once, and never from within `start`.
protocol ConnectorHandler: AnyObject {
  func connected(_ descriptor: consuming Descriptor, to address: SocketAddress)
  func connectingFailed(_ reason: String)
}

/// Opens a TCP connection to an endpoint: all its addresses in order, the next one after a short wait or at once when one
/// fails, the first that answers wins (RFC 8305 in its simplest form).
final class Connector {
  private final class Attempt: EventSource {
    let address: SocketAddress
    let raw: Int32
    var descriptor: Descriptor?
    var watch: Watch?
    unowned let connector: Connector

    init(_ address: SocketAddress, _ descriptor: consuming Descriptor, _ connector: Connector) {
      self.address = address
      raw = descriptor.raw
      self.descriptor = consume descriptor
      self.connector = connector
    }
    func ready(_ readiness: Readiness) { connector.answered(self) }
  }

  private unowned let loop: EventLoop
  private let endpoint: Endpoint
  private unowned let handler: any ConnectorHandler
  private var resolution: Int?
  private var waiting: [SocketAddress] = []
  private var attempts: [Attempt] = []
  private var failures: [String] = []
  private var stagger: TimerToken?
  private var isOver = false

  init(_ loop: EventLoop, _ endpoint: Endpoint, _ handler: any ConnectorHandler) {
    self.loop = loop
    self.endpoint = endpoint
    self.handler = handler
  }

  func start() {
    if let address = Resolver.numeric(endpoint) { return start(trying: [address]) }
    loop.own(self)
    resolution = loop.resolve(endpoint) { [unowned self] in resolved($0) }
  }

  /// Skips the resolver.
  func start(trying addresses: [SocketAddress]) {
    loop.own(self)
    waiting = addresses
    stagger = loop.schedule(after: 0) { [unowned self] in tryNext() }
  }

  /// Silences the handler too.
  func cancel() {
    guard !isOver else { return }
    isOver = true
    if let resolution { loop.forget(resolution: resolution) }
    if let stagger { loop.cancel(stagger) }
    for attempt in attempts { drop(attempt) }
    attempts = []
    loop.disown(self)
  }

  private func resolved(_ resolution: Resolution) {
    self.resolution = nil
    switch resolution {
    case .success(let addresses) where !addresses.isEmpty:
      waiting = addresses
      tryNext()
    case .success: fail("\(endpoint.host): the name has no address")
    case .failure(let error): fail(error.description)
    }
  }

  private func tryNext() {
    if let stagger { loop.cancel(stagger) }
    stagger = nil
    while !waiting.isEmpty {
      let address = waiting.removeFirst()
      do throws(SystemError) {
        let attempt = Attempt(address, try Socket.connecting(to: address), self)
        attempt.watch = try loop.watch(attempt.raw, .output, attempt)
        attempts.append(attempt)
        break
      } catch {
        failures.append("\(address): \(SystemError.text(error.code))")
      }
    }
    if !waiting.isEmpty {
      stagger = loop.schedule(after: Self.staggerSeconds) { [unowned self] in tryNext() }
    } else if attempts.isEmpty {
      fail(failures.joined(separator: "; "))
    }
  }

  private func answered(_ attempt: Attempt) {
    let code = Socket.pendingError(attempt.raw)
    attempts.removeAll { $0 === attempt }
    drop(attempt)
    if code == 0, let descriptor = attempt.descriptor.take() {
      cancel()
      handler.connected(descriptor, to: attempt.address)
    } else {
      failures.append("\(attempt.address): \(SystemError.text(code))")
      tryNext()
    }
  }

  private func drop(_ attempt: Attempt) {
    if let watch = attempt.watch { loop.unwatch(watch, attempt.raw) }
    attempt.watch = nil
  }

  private func fail(_ reason: String) {
    cancel()
    handler.connectingFailed(reason)
  }

  private static let staggerSeconds = 0.25
}
