import TLS
import Wire

/// Connects a machine to a socket: connects or accepts, does TLS, transfers bytes both ways, and keeps the machine's deadline.
/// The loop owns the link from `start` until its end; the link owns its machine. Calls to the machine are never nested. Its
/// requests (flush, pause, close) are carried out before the loop next waits.
public final class Link: Transport {
  public let machine: any Machine
  /// The peer: as configured for a client, numeric for an accepted connection.
  public let endpoint: Endpoint
  /// The numeric address of the other end of the socket: the peer or the proxy.
  public private(set) var address: Endpoint?
  /// Bytes taken from the machine that the kernel has not accepted yet.
  public private(set) var bufferedOutput = 0
  public private(set) var end: TransportEnd?

  private enum State {
    /// Not started. → connecting (client), handshaking or open (accepted), ended.
    case idle
    /// Queued at the limiter, resolving or connecting. → tunnelling, handshaking, open, ended.
    case connecting
    /// Connected to the proxy, which has not opened the tunnel. → handshaking, open, ended.
    case tunnelling
    /// Connected to the peer without TLS. → open, ended.
    case handshaking
    /// The machine is running. → ended.
    case open
    case ended
  }

  private enum OutputEnd {
    case open
    /// → `closed`, once the kernel has all bytes.
    case wanted
    case closed
  }

  private unowned let loop: EventLoop
  private let options: LinkOptions
  private let security: Security
  private var state = State.idle
  private var stream: ByteStream?
  private var connector: Connector?
  private var tunnel: ConnectTunnel?
  /// Held from the start until the link is open.
  private var ticket: ConnectLimiter.Ticket?
  private var accepted: Descriptor?
  private var watch: Watch?
  private var interest: Readiness = []
  private var output = OutputBuffer()
  private var isKernelFull = false
  private var isDirty = false
  private var isResuming = false
  private var pendingEnd: TransportEnd?
  private var outputEnd = OutputEnd.open
  private var establishing: TimerToken?
  private var deadlineTimer: TimerToken?
  private var armedDeadline = MonotonicTime.distantFuture

  enum Security {
    case plain
    case client(TLSClientContext, name: String)
    case server(TLSServerContext)
  }

  /// - Parameter serverName: the name in the certificate, if it isn't the endpoint's host.
  public convenience init(
    loop: EventLoop, machine: any Machine, to endpoint: Endpoint, tls: TLSClientContext? = nil, serverName: String? = nil,
    options: LinkOptions = LinkOptions()
  ) {
    let security = tls.map { Security.client($0, name: serverName ?? endpoint.host) } ?? .plain
    self.init(loop: loop, machine: machine, endpoint: endpoint, security: security, options: options)
  }

  private init(loop: EventLoop, machine: any Machine, endpoint: Endpoint, security: Security, options: LinkOptions) {
    self.loop = loop
    self.machine = machine
    self.endpoint = endpoint
    self.security = security
    self.options = options
    machine.transport = self
  }

  convenience init(
    loop: EventLoop, machine: any Machine, accepted: consuming Descriptor, from peer: Endpoint, tls: TLSServerContext?,
    options: LinkOptions
  ) {
    self.init(loop: loop, machine: machine, endpoint: peer, security: tls.map { .server($0) } ?? .plain, options: options)
    self.accepted = consume accepted
  }

  /// Begins connecting. Every result, including failures, comes in a later turn.
  public func start() {
    guard state == .idle, pendingEnd == nil else { return }
    state = .connecting
    loop.own(self)
    if let descriptor = accepted.take() {
      limitTime()
      connected(descriptor, peer: endpoint)
    } else if let limiter = options.limiter {
      ticket = loop.enter(limiter, endpoint) { [unowned self] in connect() }
    } else {
      connect()
    }
  }

  private func limitTime() {
    establishing = loop.schedule(after: options.connectTimeout) { [unowned self] in establishingTimedOut() }
  }

  private func connect() {
    limitTime()
    let connector: Connector
    if let proxy = options.proxy {
      let refusal = Resolver.numeric(endpoint).flatMap { options.addresses.refusal(of: [$0], for: endpoint.host) }
      if let refusal { return finish(.connectFailed(refusal)) }
      connector = Connector(loop, proxy.endpoint, self)
    } else {
      connector = Connector(loop, endpoint, self, policy: options.addresses)
    }
    self.connector = connector
    connector.start()
  }

  private func leaveGate() {
    if let ticket { loop.forget(ticket) }
    ticket = nil
  }

  // MARK: Transport

  public func outputReady() {
    guard !isDirty, state != .ended else { return }
    isDirty = true
    loop.flushThisTurn(self)
  }

  public var isReadingPaused = false {
    didSet { if isReadingPaused != oldValue { outputReady() } }
  }

  public var applicationProtocol: String? { tlsSession.map { $0.applicationProtocol ?? "" } }

  public func close() { finish(.closedLocally) }

  public func finishOutput() {
    guard outputEnd == .open else { return }
    outputEnd = .wanted
    outputReady()
  }

  var tlsSession: TLSSession? { stream?.tls }
  var hasNothingUnacknowledged: Bool { stream.map { Socket.unacknowledged($0.raw) == 0 } ?? false }

  /// The first reason wins; it is delivered when the loop flushes.
  private func finish(_ reason: TransportEnd) {
    guard pendingEnd == nil, state != .ended else { return }
    pendingEnd = reason
    if state == .idle { loop.own(self) }
    outputReady()
  }

  // MARK: Connecting

  private func connected(_ descriptor: consuming Descriptor, peer: Endpoint) {
    address = peer
    let raw = descriptor.raw
    Socket.tune(raw, userTimeout: options.userTimeout)
    stream = ByteStream(descriptor)
    do throws(SystemError) {
      interest = [.input, .peerShutdown]
      watch = try loop.watch(raw, interest, self)
    } catch {
      return finish(.connectFailed(error.description))
    }
    if let proxy = options.proxy { openTunnel(through: proxy) } else { secure() }
  }

  private func openTunnel(through proxy: ProxyAddress) {
    let tunnel = ConnectTunnel(to: endpoint, through: proxy)
    self.tunnel = tunnel
    state = .tunnelling
    var request = OutputBuffer()
    request.append(tunnel.request)
    // A new socket's buffer has room for all of it.
    guard stream?.write(&request) == .all else { return loseTunnel("takes no request") }
  }

  private func continueTunnel() {
    guard let stream else { return }
    let (count, condition) = stream.read(into: loop.readBuffer)
    var answer: [UInt8] = []
    loop.readBuffer.withBytes(count) { $0.append(0..<count, to: &answer) }
    switch tunnel?.receive(answer) {
    case .open: secure()
    case .refused(let why): refuseTunnel(why)
    case .incomplete, nil:
      if condition == .ended { loseTunnel("closes the connection instead of answering") }
      if case .failed(let reason) = condition { loseTunnel("gives no answer: \(reason)") }
    }
  }

  private func loseTunnel(_ reason: String) { refuseTunnel(tunnel?.refusal(reason) ?? reason) }

  private func refuseTunnel(_ why: String) {
    guard pendingEnd == nil else { return }
    ProxyRefusals.shared.add(status: tunnel?.answer ?? 0)
    finish(.connectFailed(why))
  }

  private func secure() {
    tunnel = nil
    state = .handshaking
    switch security {
    case .plain: opened()
    case .client: continueHandshake()
    // The client speaks first. Until then it gets no session, which needs about forty kilobytes.
    case .server: break
    }
  }

  private func continueHandshake() {
    guard let stream else { return }
    if stream.tls == nil {
      do throws(CredentialError) { stream.tls = try security.session(on: stream.raw) } catch {
        return failHandshake(error.description)
      }
    }
    guard let tls = stream.tls else { return }
    switch tls.handshake() {
    case .done: opened()
    case .wantsInput: setInterest([.input, .peerShutdown])
    case .wantsOutput: setInterest([.output])
    case .failed(let why): failHandshake(why)
    }
  }

  private func failHandshake(_ why: String) {
    finish(.handshakeFailed(options.proxy.map { "\(why) (through the proxy \($0))" } ?? why))
  }

  private func failConnecting(_ why: String) {
    guard let proxy = options.proxy else { return finish(.connectFailed(why)) }
    refuseTunnel("the proxy \(proxy) can't be reached: \(why)")
  }

  private func opened() {
    guard pendingEnd == nil else { return }
    state = .open
    leaveGate()
    if let establishing { loop.cancel(establishing) }
    establishing = nil
    machine.transportOpened(at: loop.now)
    outputReady()
    // Bytes sent right after the handshake may already be in TLS's buffer.
    if stream?.hasBufferedInput == true { resumeNextTurn() }
  }

  private func establishingTimedOut() {
    establishing = nil
    let why = "timed out after \(Int(options.connectTimeout.rounded(.up))) s"
    switch state {
    case .handshaking: failHandshake(why)
    case .tunnelling: loseTunnel("opens no tunnel to \(endpoint): \(why)")
    default: failConnecting(options.proxy == nil ? "\(endpoint): \(why)" : why)
    }
  }

  // MARK: Reading

  private func receive() {
    guard let stream, state == .open else { return }
    var budget = Self.readBudget
    var isMore = false
    while budget > 0, pendingEnd == nil, !isReadingPaused {
      let (count, condition) = stream.read(into: loop.readBuffer)
      if count > 0 {
        budget -= count
        loop.readBuffer.withBytes(count) { machine.receive($0, at: loop.now) }
      }
      switch condition {
      case .more: isMore = true
      case .drained: return outputReady()
      case .ended: finish(.closedByPeer)
      case .failed(let reason): finish(reason)
      }
    }
    outputReady()
    // Never after `drained`: with half a record in the buffer, the loop would spin until the rest arrives.
    if isMore, stream.hasBufferedInput { resumeNextTurn() }
  }

  /// For bytes in TLS's buffer, which epoll can't see.
  private func resumeNextTurn() {
    guard !isResuming, !isReadingPaused, pendingEnd == nil else { return }
    isResuming = true
    loop.resumeNextTurn(self)
  }

  func resume() {
    isResuming = false
    guard pendingEnd == nil else { return }
    if stream?.hasBufferedInput == true { receive() }
    outputReady()
  }

  // MARK: The end of a turn

  /// Carries out the turn's requests: flush, pause or resume, deadline, end.
  func settle() {
    isDirty = false
    if state == .open, pendingEnd == nil || pendingEnd == .closedByPeer { flush() }
    if let pendingEnd { return deliver(pendingEnd) }
    guard state == .open else { return }
    updateInterest()
    watchDeadline()
  }

  private func flush() {
    guard let stream, !isKernelFull else { return }
    var share = Self.writeBudget
    while share > 0 {
      let isMachineDrained = takeOutput()
      let before = output.count
      guard before > 0 else { break }
      switch stream.write(&output) {
      case .all: break
      case .blocked: isKernelFull = true
      case .failed(let reason): finish(reason)
      }
      share -= before - output.count
      if isKernelFull || pendingEnd != nil || isMachineDrained { break }
    }
    bufferedOutput = output.count
    if share <= 0 { outputReady() }
    if output.isEmpty, outputEnd == .wanted {
      outputEnd = .closed
      stream.finishWriting()
    }
    if output.isEmpty, pendingEnd == nil, machine.isFinished { pendingEnd = .closedLocally }
  }

  /// Fills the buffer up to about a TLS flight. Returns true if the machine has no more output.
  private func takeOutput() -> Bool {
    // Moved out of the link: the machine may read `bufferedOutput` meanwhile.
    var buffer = OutputBuffer()
    swap(&buffer, &output)
    defer { swap(&buffer, &output) }
    while buffer.count < Self.outputMark {
      let before = buffer.count
      machine.writeOutput(to: &buffer, at: loop.now)
      if buffer.count == before { return true }
    }
    return false
  }

  private func updateInterest() {
    guard let stream else { return }
    var wanted: Readiness = isReadingPaused ? [] : [.input, .peerShutdown]
    if isKernelFull || stream.readWantsOutput { wanted.insert(.output) }
    let isResumed = wanted.contains(.input) && !interest.contains(.input)
    setInterest(wanted)
    if isResumed, stream.hasBufferedInput { resumeNextTurn() }
  }

  private func setInterest(_ wanted: Readiness) {
    guard wanted != interest, let watch, let stream else { return }
    interest = wanted
    do throws(SystemError) { try loop.change(watch, stream.raw, wanted) } catch { finish(.failed(error.description)) }
  }

  // MARK: The machine's deadline

  /// Uses at most one timer and rearms it only for an earlier deadline. A later deadline is noticed when the timer fires, so
  /// moving it with every message costs nothing.
  private func watchDeadline() {
    let deadline = machine.deadline
    if deadline < armedDeadline { arm(deadline) }
  }

  private func arm(_ deadline: MonotonicTime) {
    if let deadlineTimer { loop.cancel(deadlineTimer) }
    armedDeadline = deadline
    deadlineTimer = loop.time.schedule(at: deadline) { [unowned self] in deadlineTimerFired() }
  }

  private func deadlineTimerFired() {
    deadlineTimer = nil
    armedDeadline = .distantFuture
    guard state == .open, pendingEnd == nil else { return }
    guard machine.deadline <= loop.now else { return watchDeadline() }
    machine.deadlineReached(at: loop.now)
    // A machine that leaves its deadline in the past is called again, but not at once.
    if machine.deadline <= loop.now { arm(loop.now.advanced(bySeconds: 0.001)) }
    outputReady()
  }

  // MARK: The end

  private func deliver(_ reason: TransportEnd) {
    state = .ended
    end = reason
    leaveGate()
    connector?.cancel()
    connector = nil
    for timer in [establishing, deadlineTimer] { if let timer { loop.cancel(timer) } }
    establishing = nil
    deadlineTimer = nil
    if let watch, let stream { loop.unwatch(watch, stream.raw) }
    watch = nil
    if let stream, reason == .closedLocally || reason == .closedByPeer {
      stream.finishWriting()
      // Unread input would cause a reset, which could destroy a finished machine's last bytes.
      if machine.isFinished, reason == .closedLocally { Lingering.start(stream, on: loop) }
    }
    stream = nil
    bufferedOutput = 0
    machine.transport = nil
    machine.transportClosed(reason, at: loop.now)
    // Another turn follows at once, so that hooks see the effects of the flush.
    loop.time.requestAnother()
    loop.disown(self)
  }

  private static let readBudget = 16 * 1024
  private static let writeBudget = 1024 * 1024
  private static let outputMark = 64 * 1024
}

extension Link: EventSource {
  func ready(_ readiness: Readiness) {
    switch state {
    case .tunnelling: continueTunnel()
    case .handshaking:
      // Avoids a session for each peer that leaves without a byte.
      guard stream?.tls != nil || !readiness.contains(.peerShutdown) else {
        return failHandshake("the peer closed the connection during the handshake")
      }
      continueHandshake()
    case .open:
      if readiness.contains(.output) {
        isKernelFull = false
        outputReady()
      }
      if isReadingPaused {
        // epoll always reports these two: without an end the loop would spin.
        if !readiness.isDisjoint(with: [.error, .hangup]), let stream { finish(stream.fault()) }
      } else {
        // TLS may have waited for input before it could write.
        isKernelFull = isKernelFull && stream?.tls == nil
        receive()
      }
    case .idle, .connecting, .ended: break
    }
  }
}

extension Link: ConnectorHandler {
  func connected(_ descriptor: consuming Descriptor, to address: SocketAddress) {
    connector = nil
    connected(descriptor, peer: address.endpoint)
  }

  func connectingFailed(_ reason: String) {
    connector = nil
    failConnecting(reason)
  }
}

extension Link.Security {
  fileprivate func session(on raw: Int32) throws(CredentialError) -> TLSSession? {
    switch self {
    case .plain: nil
    case .client(let context, let name): try context.session(on: raw, host: name)
    case .server(let context): try context.session(on: raw)
    }
  }
}
