import HTTP2
import PushCore
import Wire

/// What the pools of both providers have in common: slots, sending again, the circuit, a stopped credential, timers.
///
/// A push handed over is in exactly one place until it is reported back: on a stream, in `resends` or in `unauthorised`. The latter two
/// hold only pushes that left once and certainly were not processed: one while a connection for them exists or is being made, the other
/// while an authorisation is being fetched.
public class ProviderPool: Pool {
  public weak var handler: (any PoolHandler)?
  public weak var observer: (any PoolObserver)?

  /// So often connection control may turn one push away before it goes back to the caller.
  static let refusalLimit: UInt8 = 3
  /// Seconds between requests that ask whether a stopped credential is accepted again.
  static let stoppedProbeInterval = 60.0
  /// The longest the whole pool waits on the word of one answer, in seconds.
  static let longestPause = 600.0

  /// Refusals for want of quota in a row that make the pool pause, for `quotaPause` seconds where the provider doesn't say how long: a
  /// single one may be about one device.
  static let quotaTrip = 10
  static let quotaPause = 60.0
  /// So many refusals of an authorisation in a row are no longer the trouble of single requests.
  static let refusalTrip = 20

  /// The provider refuses the credential.
  private struct Stop {
    var reason: String
    /// What a push ends with that can't wait.
    var code: PushError
    var probeAt: MonotonicTime
    /// A push that was in flight and is taken shows that others are.
    var yields: Bool
    var isProbing = false
  }

  let time: Turn
  let dialer: any Dialer
  let connections: ConnectionSet
  var slots = SlotTable()
  private var resends = SlotQueue()
  /// Wait for another authorisation than the one that others go out with.
  private var unauthorised = SlotQueue()
  private var circuit = Circuit()
  private var stop: Stop?
  /// Whether a new connection carries one request at a time until the provider has answered one.
  var probesFirst: Bool
  private var hadOutage = false
  private var pauseReason = ""
  private var quotaRefusals = 0
  /// The newest authorisation of the present credential that the provider has taken, and how often it has refused any since.
  private var acceptedGeneration = -1
  private var authorisationRefusals = 0
  /// How many pushes in a row have asked for another authorisation.
  private var renewalsInARow = 0
  private var alarms = AlarmGate()
  /// A caller found no capacity and is to be notified when there is some.
  private(set) var isStarved = false
  private(set) var isDraining = false
  private var isClosed = false
  private var armedFor = MonotonicTime.distantFuture

  init(time: Turn, dialer: any Dialer, connections: ConnectionSet, probesFirst: Bool) {
    self.time = time
    self.dialer = dialer
    self.connections = connections
    self.probesFirst = probesFirst
    connections.owner = self
  }

  /// Closes the connections; must happen before their event loop is destroyed.
  deinit { connections.close() }

  // MARK: What a provider adds

  /// Hands the push in `slot` to the session with the current authorisation.
  func submit(_ slot: Int, to session: ClientSession) { preconditionFailure("a provider's pool submits") }
  /// Forgets the push in `slot`.
  func forget(_ slot: Int) {}
  func interpret(_ response: Response) -> ReplyMeaning { preconditionFailure("a provider's pool interprets") }
  /// What an answer means to the push in `slot` and what to do about it, for operators.
  func advice(_ meaning: ReplyMeaning, for slot: Int?) -> String { "" }
  /// The credential, for operators: its ids, never its secrets.
  var credentialName: String { "" }
  /// The provider has taken a push with the present credential.
  final var hasBeenTaken: Bool { acceptedGeneration >= 0 }
  /// Whom a refusal of the credential, or of what belongs to it, concerns.
  enum RefusalScope {
    case everyPush
    /// Every push, as long as the provider takes none.
    case everyPushUntilTaken
    case thisPush
  }

  func scope(of meaning: ReplyMeaning, _ slot: Int) -> RefusalScope {
    meaning.connection == .stopProject ? .everyPushUntilTaken : .everyPush
  }
  /// The provider's name for the message, of a delivered one.
  func messageName(in response: Response) -> [UInt8]? { nil }
  /// The generation of the authorisation that `submit` would use; nil while there is none.
  func authorise() -> Int? { 0 }
  /// The provider refused the authorisation `generation`. False when there will be no other one for it.
  /// - Parameter isTrusted: it takes others with it, who are to go on with it until there is another one.
  func renewAuthorisation(after generation: Int, isTrusted: Bool) -> Bool { false }
  /// The provider refused the credential with the authorisation `generation`. True when that one was made under another clock than
  /// there is now, and there is a new one.
  func redateAuthorisation(after generation: Int) -> Bool { false }
  /// The provider saw too many tokens.
  func restAuthorisation() {}
  /// How many pushes the pace allows now.
  func paceAllowance() -> Int { .max }
  func paceTaken() {}
  /// Requests may go again after none could: the first one probes, and the rate is to rise gently.
  func outageEnded() {}
  var providerState: PoolState? { nil }
  var providerDeadline: MonotonicTime { .distantFuture }
  func providerDeadlineReached(at now: MonotonicTime) {}
  func providerClosing() {}
  /// Seconds by which the provider's clock is ahead of ours, where the answer has a date.
  func clockOffset(in response: Response) -> Int? { nil }

  // MARK: Pool

  public var inFlight: Int { slots.count }

  /// Connections that take pushes or finish them.
  public var openConnections: Int { connections.draining.count + connections.live.count { $0.phase == .open } }

  public var capacity: Int {
    let room = room
    if room > 0 { return room }
    if !isStarved {
      isStarved = true
      rearm()
    }
    return 0
  }

  private var room: Int {
    if isDraining { return 0 }
    var room = connections.sendableStreams - resends.count
    if let stop { room = min(room, stop.isProbing ? 1 - slots.count : 0) }
    if circuit.allowance != .max { room = min(room, circuit.allowance - slots.count) }
    guard room > 0, authorise() != nil else { return 0 }
    return min(room, paceAllowance())
  }

  public var state: PoolState {
    if isClosed { return .closed }
    if isDraining { return .draining }
    if let stop { return .stopped(reason: stop.reason) }
    if case .open = circuit.state { return .paused(reason: pauseReason) }
    if let providerState { return providerState }
    if connections.isOpen {
      if circuit.state == .halfOpen { return .probing }
      return probesFirst && !connections.live.contains(where: { $0.hasServed }) ? .probing : .open
    }
    if connections.isConnecting { return .connecting }
    return connections.retryAt == nil ? .idle : .backingOff(reason: connections.lastFailure)
  }

  public func wantsCapacity() {
    guard !isDraining else { return }
    isStarved = true
    if !isHeldBack {
      _ = authorise()
      if connections.sendableStreams == 0 { connections.want() }
    }
    rearm()
  }

  /// Connecting would be of no use yet.
  private var isHeldBack: Bool {
    if let stop, !stop.isProbing { return true }
    return circuit.allowance == 0
  }

  public func drain() {
    guard !isDraining else { return }
    isDraining = true
    giveBackResends(.shutDown)
    providerClosing()
    connections.drain()
  }

  public func shutdown() {
    isDraining = true
    giveBackResends(.shutDown)
    providerClosing()
    connections.close()
  }

  // MARK: Sending

  /// The push is stored under `slot` by now.
  final func transmit(_ slot: Int) {
    guard let generation = authorise(), let session = connections.pick() else { return giveBack(slot, .unauthorised) }
    slots[slot].generation = generation
    paceTaken()
    submit(slot, to: session)
  }

  private func sendAgain(_ slot: Int) {
    if isDraining { return giveBack(slot, .shutDown) }
    if stop != nil { return giveBack(slot, .unauthorised) }
    if circuit.allowance == 0 || (connections.retryAt != nil && !connections.isOpen && !connections.isConnecting) {
      return giveBack(slot, .unreachable)
    }
    resends.append(slot)
    if connections.sendableStreams == 0 { connections.want() }
    rearm()
  }

  /// The caller or a push that is to be sent again waits for room.
  final var isWaitingForRoom: Bool { isStarved || !resends.isEmpty }

  private func giveBack(_ slot: Int, _ why: NotSentReason) {
    forget(slot)
    handler?.notSent(tag: slots.release(slot), why: why, from: self)
  }

  final func giveBackResends(_ why: NotSentReason) {
    while let slot = resends.popFirst() ?? unauthorised.popFirst() { giveBack(slot, why) }
  }

  /// What waits for another authorisation goes out with the one that there is.
  final func authorisationSettled() {
    while let slot = unauthorised.popFirst() { sendAgain(slot) }
    advance()
    rearm()
  }

  /// Uses what room there is: first for what is to be sent again, then the caller hears of the rest.
  final func advance() {
    while !resends.isEmpty, connections.sendableStreams > 0,
      circuit.allowance == .max || slots.count - resends.count < circuit.allowance, authorise() != nil, paceAllowance() > 0,
      let slot = resends.popFirst()
    {
      transmit(slot)
    }
    if isStarved, room > 0 {
      isStarved = false
      handler?.capacityAvailable(in: self)
    }
  }

  // MARK: Answers

  private func finish(_ slot: Int, _ meaning: ReplyMeaning, _ response: Response, _ handler: (any PoolHandler)?) {
    if meaning.alarm { raiseAlarm(meaning, of: slot) }
    forget(slot)
    let name = slots[slot].wantsName && meaning.reaction == .delivered ? messageName(in: response) : nil
    handler?.answered(tag: slots.release(slot), meaning: meaning, name: name, from: self)
  }

  private func raiseAlarm(_ meaning: ReplyMeaning, of slot: Int) {
    guard let count = alarms.raised(meaning.reason, at: time.now) else { return }
    observed(.alarm(reason: meaning.reason, advice: advice(meaning, for: slot), count: count))
  }

  /// The token ran out under the push: once, it is sent again with a new one. An authorisation that the provider takes from others
  /// is not to blame: then the push alone waits. Of one that nobody has been taken with, a second push's refusal is believed.
  private func reauthorise(
    _ slot: Int, _ meaning: ReplyMeaning, _ response: Response, on connection: PooledConnection, _ handler: (any PoolHandler)?
  ) {
    // A credential replaced meanwhile has its own authorisation.
    let isReplaced = connection.epoch != connections.epoch
    let generation = slots[slot].generation
    let isTrusted = acceptedGeneration >= generation && renewalsInARow < Self.refusalTrip
    let isRenewed =
      !slots[slot].wasReauthorised && (isReplaced || renewAuthorisation(after: generation, isTrusted: isTrusted))
    if isRenewed {
      if meaning.connection == .refreshTokenAndReplace { connections.replace(connection) }
      slots[slot].wasReauthorised = true
      guard !isReplaced else { return sendAgain(slot) }
      renewalsInARow += 1
      if authorise() == generation { unauthorised.append(slot) } else { sendAgain(slot) }
    } else if stop == nil, authorisationRefusals < (acceptedGeneration >= slots[slot].generation ? Self.refusalTrip : 1) {
      authorisationRefusals += 1
      raiseAlarm(meaning, of: slot)
      finish(slot, meaning, response, handler)
    } else {
      refuse(slot, meaning, response, on: connection)
    }
  }

  /// The provider refuses the credential, or only what the push wants of it, where it takes others.
  private func refused(
    _ slot: Int, _ meaning: ReplyMeaning, _ response: Response, on connection: PooledConnection, _ handler: (any PoolHandler)?
  ) {
    let scope = scope(of: meaning, slot)
    let isAlone =
      scope == .thisPush
      || scope == .everyPushUntilTaken && hasBeenTaken && authorisationRefusals < Self.refusalTrip
    guard isAlone else { return refuse(slot, meaning, response, on: connection, yields: scope == .everyPushUntilTaken) }
    if scope == .everyPushUntilTaken { authorisationRefusals += 1 }
    finish(slot, meaning, response, handler)
  }

  /// Nothing more goes out but a probe now and then, and the push has not been sent.
  private func refuse(
    _ slot: Int, _ meaning: ReplyMeaning, _ response: Response, on connection: PooledConnection, yields: Bool = false
  ) {
    let isReplaced = connection.epoch != connections.epoch
    if !slots[slot].wasReauthorised, isReplaced || redateAuthorisation(after: slots[slot].generation) {
      if !isReplaced { connections.replace(connection) }
      slots[slot].wasReauthorised = true
      return sendAgain(slot)
    }
    // What was in flight when the credential stopped says nothing new.
    if stop == nil || connection.phase == .open {
      if let offset = clockOffset(in: response), abs(offset) > 60 { observed(.clockOff(seconds: offset)) }
      stopCredential(meaning.reason, meaning.reaction.code ?? .unavailable, advice(meaning, for: slot), yields: yields)
    }
    giveBack(slot, .unauthorised)
  }

  final func stopCredential(_ reason: String, _ code: PushError, _ advice: String, yields: Bool = false) {
    let isNew = stop == nil
    stop = Stop(
      reason: reason, code: code, probeAt: time.now.advanced(bySeconds: Self.stoppedProbeInterval), yields: yields)
    connections.replaceAll()
    if isNew { observed(.credentialStopped(reason: reason, advice: advice, credential: credentialName)) }
    giveBackResends(.unauthorised)
    rearm()
  }

  /// What a push ends with that can't wait for the pool.
  public var refusalCode: PushError { stop?.code ?? .unavailable }

  /// What an answer says of the provider's health.
  private func weigh(_ meaning: ReplyMeaning) {
    guard case .retry(let kind, _) = meaning.reaction else { return circuit.succeeded() }
    switch kind.scope {
    case .device: circuit.succeeded()
    case .connection: break
    case .provider:
      if kind == .quota {
        quotaRefused(meaning)
      } else if let wait = meaning.retryAfter {
        pause(seconds: min(Double(wait), Self.longestPause), reason: meaning.reason)
      } else if let wait = circuit.failed(at: time.now, using: &time.random) {
        paused(seconds: wait, reason: meaning.reason)
      }
    }
  }

  /// One alone says nothing of the others.
  private func quotaRefused(_ meaning: ReplyMeaning) {
    quotaRefusals += 1
    guard quotaRefusals >= Self.quotaTrip else { return }
    pause(seconds: min(meaning.retryAfter.map(Double.init) ?? Self.quotaPause, Self.longestPause), reason: meaning.reason)
  }

  private func pause(seconds: Double, reason: String) {
    let wasPaused = circuit.allowance == 0
    // A little later than asked, so that many workers don't come back at once.
    let wait = seconds * Double.random(in: 1...1.1, using: &time.random)
    guard circuit.pause(seconds: wait, at: time.now) else { return }
    if wasPaused { rearm() } else { paused(seconds: wait, reason: reason) }
  }

  private func paused(seconds: Double, reason: String) {
    pauseReason = reason
    observed(.paused(seconds: seconds, reason: reason))
    giveBackResends(.unreachable)
    rearm()
  }

  private func credentialAccepted() {
    guard stop != nil else { return }
    stop = nil
    observed(.credentialAccepted)
    if isWaitingForRoom, connections.sendableStreams == 0 { connections.want() }
  }

  /// A new credential takes over: pushes in flight finish with the old one.
  final func credentialReplaced(target: DialTarget) {
    stop = nil
    acceptedGeneration = -1
    authorisationRefusals = 0
    renewalsInARow = 0
    let wasUsed = connections.isOpen || connections.isConnecting
    connections.replaceAll(target: target)
    if wasUsed || isStarved { wantsCapacity() }
    authorisationSettled()
  }

  // MARK: Time

  final func rearm() {
    var next = min(circuit.deadline, connections.deadline, providerDeadline)
    if let stop, !stop.isProbing { next = min(next, stop.probeAt) }
    guard next < armedFor, !isClosed else { return }
    armedFor = next
    time.schedule(at: next) { [weak self] in self?.deadlineReached(armed: next) }
  }

  private func deadlineReached(armed: MonotonicTime) {
    // A nearer deadline that came up later has its own timer.
    if armed == armedFor { armedFor = .distantFuture }
    guard !isClosed else { return }
    let now = time.now
    let wasPaused = circuit.allowance == 0
    circuit.advance(to: now)
    if wasPaused, circuit.allowance > 0 { outageEnded() }
    if let pending = stop, !pending.isProbing, now >= pending.probeAt { stop?.isProbing = true }
    connections.deadlineReached(at: now)
    providerDeadlineReached(at: now)
    if isStarved, !isHeldBack, connections.sendableStreams == 0 { connections.want() }
    advance()
    rearm()
  }
}

extension ProviderPool: ConnectionSetOwner {
  func answersReady(on connection: PooledConnection) {
    let handler = handler
    connection.heardAt = time.now
    while let (slot, response) = connection.session.nextAnswer() { answered(slot, response, on: connection, handler) }
    if isWaitingForRoom { advance() }
  }

  private func answered(
    _ slot: Int, _ response: Response, on connection: PooledConnection, _ handler: (any PoolHandler)?
  ) {
    let meaning = interpret(response)
    connection.answers += 1
    weigh(meaning)
    switch meaning.connection {
    case .keep, .replace:
      if response.status < 500, response.status != 403 {
        if response.status != 429 { quotaRefusals = 0 }
        accepted(slot, on: connection)
      }
      if meaning.connection == .replace { connections.replace(connection) }
      finish(slot, meaning, response, handler)
    case .keepTokenAndWait:
      restAuthorisation()
      raiseAlarm(meaning, of: slot)
      pause(seconds: Self.stoppedProbeInterval, reason: meaning.reason)
      giveBack(slot, .unauthorised)
    case .refreshTokenAndReplace, .refreshToken: reauthorise(slot, meaning, response, on: connection, handler)
    case .stopCredential, .stopTopic, .stopProject: refused(slot, meaning, response, on: connection, handler)
    }
  }

  private func accepted(_ slot: Int, on connection: PooledConnection) {
    if connection.epoch == connections.epoch { acceptedGeneration = max(acceptedGeneration, slots[slot].generation) }
    authorisationRefusals = 0
    renewalsInARow = 0
    if !connection.hasServed || stop != nil { served(connection) }
  }

  private func served(_ connection: PooledConnection) {
    connections.served(connection)
    connection.session.limitStreams(to: nil)
    // What was in flight when the credential stopped doesn't say that it is taken again.
    if connection.epoch == connections.epoch, connection.phase == .open || stop?.yields == true { credentialAccepted() }
  }

  func failed(_ slot: Int, _ failure: RequestFailure, on connection: PooledConnection) {
    connection.heardAt = time.now
    switch failure {
    case .notProcessed:
      slots[slot].refusals += 1
      if slots[slot].refusals >= Self.refusalLimit { giveBack(slot, .refused) } else { sendAgain(slot) }
    case .unknown(let why):
      if why == .timedOut, let wait = circuit.failed(at: time.now, using: &time.random) {
        paused(seconds: wait, reason: "requests time out")
      }
      forget(slot)
      handler?.unknown(tag: slots.release(slot), reason: Self.words(for: why), from: self)
    }
    if isWaitingForRoom { advance() }
  }

  private static func words(for why: RequestFailure.Unknown) -> String {
    switch why {
    case .connectionLost: "connection lost before the answer"
    case .reset(let code): "stream reset by the provider: \(code)"
    case .timedOut: "no answer in time"
    }
  }

  func streamsAvailable() { advance() }

  func connectionOpened(_ connection: PooledConnection) {
    if probesFirst || stop != nil { connection.session.limitStreams(to: 1) }
    if hadOutage {
      hadOutage = false
      circuit.probe()
      outageEnded()
    }
    advance()
    rearm()
  }

  func unreachable(reason: String) {
    hadOutage = true
    giveBackResends(.unreachable)
    rearm()
  }

  func setClosed() { isClosed = true }

  func observed(_ event: PoolEvent) { observer?.observed(event, from: self) }
}
