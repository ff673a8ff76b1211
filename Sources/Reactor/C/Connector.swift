import Glibc
import Wire

/// Receives the result of a connector: exactly one call, never from within `start`.
protocol ConnectorHandler: AnyObject {
  func connected(_ descriptor: consuming Descriptor, to address: SocketAddress)
  func connectingFailed(_ reason: String)
}

/// Opens a TCP connection to an endpoint. Tries all addresses in order, the next after a short wait or as soon as one fails;
/// the first that answers wins (a simple form of RFC 8305). Addresses without an answer are tried again every two seconds. The
/// kernel alone would double its wait before each further SYN (1, 2, 4 s), and notice a recovered host late.
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
  private let policy: AddressPolicy
  private unowned let handler: any ConnectorHandler
  private var resolution: Int?
  private var waiting: [SocketAddress] = []
  private var attempts: [Attempt] = []
  private let repeatSeconds: Double
  private var failures: [String] = []
  private var stagger: TimerToken?
  private var isOver = false

  init(
    _ loop: EventLoop, _ endpoint: Endpoint, _ handler: any ConnectorHandler, policy: AddressPolicy = .any,
    repeatSeconds: Double = 2
  ) {
    self.loop = loop
    self.endpoint = endpoint
    self.policy = policy
    self.handler = handler
    self.repeatSeconds = repeatSeconds
  }

  func start() {
    if let address = Resolver.numeric(endpoint) { return start(trying: [address]) }
    loop.own(self)
    resolution = loop.resolve(endpoint, for: policy) { [unowned self] in resolved($0) }
  }

  /// Skips the resolver.
  func start(trying addresses: [SocketAddress]) {
    loop.own(self)
    take(addresses)
    stagger = loop.schedule(after: 0) { [unowned self] in tryNext() }
  }

  /// Cancels without calling the handler.
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
      take(addresses)
      tryNext()
    case .success: fail("\(endpoint.host): the name has no address")
    case .failure(let error): fail(error.description)
    }
  }

  /// Only these addresses are tried: another look-up could give others.
  private func take(_ addresses: [SocketAddress]) {
    if let refusal = policy.refusal(of: addresses, for: endpoint.host) { failures = [refusal] } else { waiting = addresses }
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
        failed(address, error.code)
      }
    }
    if !waiting.isEmpty {
      stagger = loop.schedule(after: Self.staggerSeconds) { [unowned self] in tryNext() }
    } else if attempts.isEmpty {
      fail(failures.joined(separator: "; "))
    } else {
      stagger = loop.schedule(after: repeatSeconds) { [unowned self] in tryAgain() }
    }
  }

  /// Keeps the latest attempt at each address beside the new one, since its answer may be on the way; drops earlier ones.
  private func tryAgain() {
    var kept: [Attempt] = []
    for attempt in attempts.reversed() {
      if kept.contains(where: { $0.address.endpoint == attempt.address.endpoint }) {
        drop(attempt)
      } else {
        kept.append(attempt)
      }
    }
    attempts = kept.reversed()
    waiting = attempts.prefix(Self.mostRepeated).map(\.address)
    tryNext()
  }

  private func answered(_ attempt: Attempt) {
    let code = Socket.pendingError(attempt.raw)
    attempts.removeAll { $0 === attempt }
    drop(attempt)
    if code == 0, let descriptor = attempt.descriptor.take() {
      cancel()
      handler.connected(descriptor, to: attempt.address)
    } else {
      failed(attempt.address, code)
      tryNext()
    }
  }

  private func failed(_ address: SocketAddress, _ code: Int32) {
    let failure = "\(address): \(SystemError.text(code))"
    if !failures.contains(failure) { failures.append(failure) }
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
  /// The number of addresses that are tried again.
  private static let mostRepeated = 4
}
