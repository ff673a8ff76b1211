import HTTP2
import PushCore
import Wire

/// One credential in one shard, of all applications that have it: its connections, its authorisation, its pace. What is the same on
/// all platforms: slots, sending again, timers. The platform's part is its ``PushProvider``.
///
/// A pool is confined to its shard's loop. It keeps nothing waiting that it was not handed: what exceeds `capacity` stays with the caller
/// (and so in the broker). A push handed over is in exactly one place until it is reported back: on a stream, in `resends` or in `unauthorised`. The latter two
/// hold only pushes that left once and certainly were not processed: one while a connection for them exists or is being made, the other
/// while an authorisation is being fetched.
public final class ProviderPool {
  public weak var handler: (any PoolHandler)?
  public weak var observer: (any PoolObserver)?
  /// How long the provider takes to answer; shared with other pools.
  public var answerTimes: Latencies?

  /// So often connection control may turn one push away before it goes back to the caller.
  static let refusalLimit: UInt8 = 3

  /// Of an answer, by their places; those that a platform adds are behind them.
  static let keptHeaders = ["retry-after", "date"]
  static let (retryAfter, date) = (0, 1)

  /// For whoever hands pushes over.
  public let kind: ProviderKind
  let provider: any PushProvider
  let time: Turn
  let connections: ConnectionSet
  var slots = SlotTable()
  /// By their numbers; nil for those that are closed.
  var accounts: [PoolAccount.Record?] = []
  var closedAccounts: [Int] = []
  /// Accounts whose topic the provider refuses.
  var refusedTopics: [Int] = []
  /// The account whose push was refused last.
  var refusedAccount = 0
  /// For the caller: how many accounts still wait for their part of the free streams.
  public var contenders = 0
  /// Slots waiting to be sent again, first come first served.
  private var resends = Ring<Int>()
  /// Wait for another authorisation than the one that others go out with.
  var unauthorised = Ring<Int>()
  var health = PoolHealth()
  var trust = AuthorisationTrust()
  /// nil where the provider grants any number.
  private var pacer: Pacer?
  var silence = SilenceWatch()
  /// Asks whether a stopped credential is taken.
  var credentialCanary: Canary?
  /// A caller found no capacity and is to be notified when there is some.
  private(set) var isStarved = false
  /// The number of the connection that the push came back by which is being reported.
  public internal(set) var answering = 0
  /// Takes nothing more.
  private(set) var isClosing = false
  var isClosed = false
  private var armedFor = MonotonicTime.distantFuture

  public init(_ kind: ProviderKind, settings: PoolSettings, time: Turn, dialer: any Dialer) {
    self.kind = kind
    self.time = time
    provider = kind.provider
    pacer = settings.messagesPerMinute.map { Pacer(perMinute: $0, at: time.now) }
    connections = ConnectionSet(provider.endpoint, settings, time: time, dialer: dialer)
    connections.pool = self
    provider.pool = self
  }

  /// Closes the connections; must happen before their event loop is destroyed.
  deinit {
    provider.source?.stop()
    connections.close()
  }

  // MARK: Pool

  /// Pushes handed over and not yet reported back.
  public var inFlight: Int { slots.count }

  public var platform: Platform { provider.platform }

  /// Whom it sends to.
  public var server: (host: String, port: UInt16) { (connections.endpoint.target.host, connections.endpoint.target.port) }

  /// Connections that take pushes or finish them.
  public var openConnections: Int { connections.draining.count + connections.live.count { $0.phase == .open } }

  /// One push may go out, and when that is answered, others.
  public var takesProbe: Bool { state == .probing && room > 0 }

  /// How many pushes may be handed over right now; 0 while connecting, backing off, paused or stopped.
  public var capacity: Int {
    let room = room
    if room > 0 { return room }
    if !isStarved {
      if slots.expected == 0 { silence.heardAt = time.now }
      isStarved = true
      rearm()
    }
    return 0
  }

  private var room: Int {
    if isClosing { return 0 }
    let room = min(connections.sendableStreams - resends.count, health.allowance - slots.expected)
    return room > 0 ? min(room, permits) : 0
  }

  /// How many pushes the authorisation and the pace allow now.
  private var permits: Int {
    guard let authorisation = provider.authorise() else { return 0 }
    return min(authorisation.allowance, pacer?.available(at: time.now) ?? .max)
  }

  public var state: PoolState {
    if isClosed { return .closed }
    if isClosing { return .closing }
    if let stop = health.stop { return .stopped(reason: stop.reason) }
    if health.isPaused { return .paused(reason: health.pauseReason) }
    if let state = provider.source?.state(at: time.now) { return state }
    if connections.isOpen {
      if health.isProbing { return .probing }
      return connections.endpoint.probesFirst && !connections.live.contains(where: { $0.hasServed }) ? .probing : .open
    }
    if connections.isConnecting { return .connecting }
    return connections.retryAt == nil ? .idle : .backingOff(reason: connections.lastFailure)
  }

  /// Seconds without an answer while one is waited for.
  static let longestSilence = 2.0

  /// The provider serves nothing: something has failed and nothing was served since, or it is silent.
  public func isInTrouble(at now: MonotonicTime) -> Bool {
    health.hasFailed || (slots.expected > 0 || isStarved) && now.seconds(since: silence.heardAt) > Self.longestSilence
  }

  /// Something is waiting for this pool: it connects, or opens another connection. `capacityAvailable` follows when it can.
  public func wantsCapacity() {
    guard !isClosing else { return }
    if !isStarved, slots.expected == 0 { silence.heardAt = time.now }
    isStarved = true
    if health.allowance > 0 {
      _ = provider.authorise()
      if connections.sendableStreams == 0 { connections.want() }
    }
    askForCredential()
    rearm()
  }

  /// Closes every connection at once; what is in flight is reported as `unknown` or `notSent` before the loop next waits.
  public func shutdown() {
    isClosing = true
    giveBackResends(.shutDown)
    silence.end()
    credentialCanary = nil
    for account in refusedTopics { accounts[account]?.canary = nil }
    provider.source?.stop()
    connections.close()
  }

  // MARK: Sending

  /// The push is stored under `slot` by now.
  func transmit(_ slot: Int) {
    guard let authorisation = provider.authorise(), let session = connections.pick() else {
      return giveBack(slot, .unauthorised)
    }
    slots[slot].generation = authorisation.generation
    slots[slot].sentAt = time.now
    slots.expect(slot)
    if slots.expected == 1 || silence.checkAt == .distantFuture { watchSilence() }
    pacer?.take()
    if provider.submit(slot, to: session) { trust.trialSlot = slot }
  }

  func sendAgain(_ slot: Int) {
    endTrial(of: slot)
    if isClosing { return giveBack(slot, .shutDown) }
    if let refusal = health.refusal { return giveBack(slot, refusal) }
    if connections.retryAt != nil && !connections.isOpen && !connections.isConnecting {
      return giveBack(slot, .unreachable)
    }
    slots.expect(slot)
    resends.append(slot)
    if connections.sendableStreams == 0 { connections.want() }
    rearm()
  }

  /// The caller or a push that is to be sent again waits for room.
  var isWaitingForRoom: Bool { isStarved || !resends.isEmpty }

  func giveBack(_ slot: Int, _ why: NotSentReason) {
    endTrial(of: slot)
    provider.forget(slot)
    handler?.notSent(tag: slots.release(slot), why: why, from: self)
  }

  func giveBackResends(_ why: NotSentReason) {
    while let slot = resends.popFirst() ?? unauthorised.popFirst() { giveBack(slot, why) }
  }

  /// `slot` is about to leave its stream.
  func endTrial(of slot: Int) {
    guard slot == trust.trialSlot else { return }
    trust.trialSlot = -1
    provider.trialEnded()
  }

  /// What is on a stream now may never be answered.
  func overlookStreams() {
    slots.overlookAll()
    for slot in resends { slots.expect(slot) }
    for slot in unauthorised { slots.expect(slot) }
  }

  /// What waits for another authorisation goes out with the one that there is.
  func resendUnauthorised() {
    for _ in 0..<unauthorised.count { if let slot = unauthorised.popFirst() { sendAgain(slot) } }
  }

  /// The same, at once.
  func authorisationSettled() {
    resendUnauthorised()
    advance()
    rearm()
  }

  /// There is no authorisation, and none will come for some time.
  func authorisationFailed() {
    giveBackResends(.unauthorised)
    rearm()
  }

  /// Uses what room there is: first for what is to be sent again, then the caller hears of the rest.
  func advance() {
    while !resends.isEmpty, connections.sendableStreams > 0,
      slots.expected - resends.count < health.allowance, permits > 0, let slot = resends.popFirst()
    {
      if accounts[slots[slot].account]?.stop != nil {
        giveBack(slot, .unauthorised)
      } else if handler?.isWanted(tag: slots[slot].tag) ?? true {
        transmit(slot)
      } else {
        giveBack(slot, .unwanted)
      }
    }
    if isStarved, room > 0 {
      isStarved = false
      handler?.capacityAvailable(in: self)
    }
  }

  /// The provider takes no push, or the token endpoint gives no token, by the present credential.
  public var isCredentialRefused: Bool { health.stop != nil || provider.source?.isRefused == true }

  /// What a push ends with that can't wait for the pool.
  public var refusalCode: PushError { health.stop?.code ?? .unavailable }

  func paused(_ pause: PoolHealth.Pause?) {
    guard let pause else { return }
    if case .begun(let seconds, let reason) = pause {
      observed(.paused(seconds: seconds, reason: reason))
      giveBackResends(.unreachable)
    }
    rearm()
  }

  /// A new credential takes over: pushes in flight finish with the old one.
  func credentialReplaced() {
    let isWanted = isStarved || refusedTopics.contains { accounts[$0]?.isStarved == true }
    forgetRefusals()
    trust = AuthorisationTrust()
    silence.end()
    let wasUsed = connections.isOpen || connections.isConnecting
    connections.replaceAll(endpoint: provider.endpoint)
    if wasUsed || isWanted { wantsCapacity() }
    authorisationSettled()
  }

  // MARK: Pace

  /// Whether there is a quota to be divided.
  public var isPaced: Bool { pacer != nil }

  /// Another share of the provider's quota from now on.
  public func changePace(messagesPerMinute: Int) {
    pacer?.change(perMinute: messagesPerMinute, at: time.now)
    rearm()
  }

  /// Requests may go again after none could: the first one probes, and the rate is to rise gently.
  func outageEnded() {
    if health.isShortOfQuota { pacer?.lower(at: time.now) }
    health.isShortOfQuota = false
    pacer?.ramp(from: time.now)
  }

  /// When the pace allows a push that waits now; `distantFuture` where something else holds it back.
  private var paceDeadline: MonotonicTime {
    guard pacer != nil, isWaitingForRoom, connections.sendableStreams > 0 else { return .distantFuture }
    let now = time.now
    let next = pacer?.nextToken(after: now) ?? now
    return next > now ? next : .distantFuture
  }

  // MARK: Time

  func rearm() {
    var next = min(min(health.deadline, connections.deadline), min(silence.checkAt, topicDeadline))
    next = min(next, paceDeadline, provider.source?.deadline ?? .distantFuture)
    guard next < armedFor, !isClosed else { return }
    armedFor = next
    time.schedule(at: next) { [weak self] in self?.deadlineReached(armed: next) }
  }

  private func deadlineReached(armed: MonotonicTime) {
    // A nearer deadline that came up later has its own timer.
    if armed == armedFor { armedFor = .distantFuture }
    guard !isClosed else { return }
    let now = time.now
    if health.advance(to: now) { outageEnded() }
    connections.deadlineReached(at: now)
    provider.source?.deadlineReached(at: now)
    checkSilence(at: now)
    askForCredential()
    askForTopics(at: now)
    if isStarved, health.allowance > 0, connections.sendableStreams == 0 { connections.want() }
    advance()
    rearm()
  }
}
