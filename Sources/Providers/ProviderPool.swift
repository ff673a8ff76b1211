import HTTP2
import PushCore
import Reactor
import Wire

/// One credential in one shard, shared by all applications that use it: connections, authorisation, rate. Has the parts that
/// are the same on all platforms: slots, resending, timers. The platform's ``PushProvider`` does the rest.
///
/// A pool is confined to its shard's loop. It accepts at most `capacity` pushes; the rest stays with the caller, and so in the
/// broker. An accepted push without a result is on a stream, in `resends` or in `unauthorised`. The last two hold only pushes
/// that were sent once and certainly not processed. Pushes stay in `resends` only while a connection exists or is being made,
/// in `unauthorised` only while an authorisation is being fetched.
public final class ProviderPool {
  public weak var handler: (any PoolHandler)?
  public weak var observer: (any PoolObserver)?
  /// Answer times of the provider; shared with other pools.
  public var answerTimes: Latencies?

  /// After this number of refused streams a push goes back to the caller.
  static let refusalLimit: UInt8 = 3

  /// The kept headers of an answer; a platform's own headers follow.
  static let keptHeaders = ["retry-after", "date"]
  static let (retryAfter, date) = (0, 1)

  public let kind: ProviderKind
  let provider: any PushProvider
  let time: Turn
  let connections: ConnectionSet
  var slots = SlotTable()
  /// By number; nil for closed accounts.
  var accounts: [PoolAccount.Record?] = []
  var closedAccounts: [Int] = []
  var refusedTopics: [Int] = []
  /// The topic of the push that was refused last.
  var refusedTopic: [UInt8] = []
  /// For the caller: the number of accounts that still wait for their share of the free streams.
  public var contenders = 0
  /// Slots to send again, in order.
  private var resends = Ring<Int>()
  /// Slots that wait for another authorisation.
  var unauthorised = Ring<Int>()
  var health = PoolHealth()
  var trust = AuthorisationTrust()
  /// Nil if the provider has no quota.
  private var rateLimiter: RateLimiter?
  var silence = SilenceDetector()
  var credentialCanary: ProviderProbe?
  /// True if a caller found no capacity and must be notified.
  var isStarved = false
  /// The number of the connection that the currently reported push used.
  public internal(set) var answering = 0
  private(set) var isClosing = false
  var isClosed = false
  private var armedFor = MonotonicTime.distantFuture

  public init(_ kind: ProviderKind, settings: PoolSettings, time: Turn, dialer: any Dialer) {
    self.kind = kind
    self.time = time
    provider = kind.provider
    rateLimiter = settings.messagesPerMinute.map { RateLimiter(perMinute: $0, at: time.now) }
    connections = ConnectionSet(provider.endpoint, settings, time: time, dialer: dialer)
    connections.pool = self
    provider.pool = self
  }

  /// Closes the connections. Must happen before their event loop is destroyed.
  deinit {
    provider.source?.stop()
    connections.close()
  }

  // MARK: Pool

  /// Pushes without a result.
  public var inFlight: Int { slots.count }

  public var platform: Platform { provider.platform }

  public var server: Endpoint { connections.endpoint.target.endpoint }

  public var openConnections: Int { connections.draining.count + connections.live.count { $0.phase == .open } }

  /// True if one push may be sent as a probe; others follow when it is answered.
  public var takesProbe: Bool { state == .probing && room > 0 }

  /// The number of pushes that may be sent now; 0 while connecting, backing off, paused or stopped.
  public var capacity: Int {
    let room = room
    if room > 0 { return room }
    if !isStarved {
      if slots.expected == 0 { silence.begin(at: time.now) }
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

  private var permits: Int {
    guard let authorisation = provider.authorise() else { return 0 }
    return min(authorisation.allowance, rateLimiter?.available(at: time.now) ?? .max)
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

  /// The time of the next try to serve a push, while nothing can be sent; nil if a push may be sent as soon as a stream is free.
  public var nextTrial: MonotonicTime? {
    if let stop = health.stop { return stop.isDue ? nil : stop.askAt }
    if health.isPaused { return health.deadline }
    return connections.isOpen || connections.isConnecting ? nil : connections.retryAt
  }

  /// Seconds without an expected answer, after which the provider counts as silent.
  static let longestSilence = 2.0

  /// True if something failed and nothing succeeded since, or if the provider is silent.
  public func isInTrouble(at now: MonotonicTime) -> Bool {
    health.hasFailed || (slots.expected > 0 || isStarved) && now.seconds(since: silence.heardAt) > Self.longestSilence
  }

  /// Announces waiting pushes: connects, or opens another connection. `capacityAvailable` follows when they can be sent.
  public func wantsCapacity() {
    guard !isClosing else { return }
    if !isStarved, slots.expected == 0 { silence.begin(at: time.now) }
    isStarved = true
    if health.allowance > 0 {
      _ = provider.authorise()
      if connections.sendableStreams == 0 { connections.want() }
    }
    askForCredential()
    rearm()
  }

  /// Closes every connection at once. Pushes in flight are reported as `unknown` or `notSent` before the loop next waits.
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

  func transmit(_ slot: Int) {
    guard let authorisation = provider.authorise(), let session = connections.pick() else {
      return giveBack(slot, .unauthorised)
    }
    slots[slot].generation = authorisation.generation
    slots[slot].sentAt = time.now
    slots.expect(slot)
    if slots.expected == 1 || silence.checkAt == .distantFuture { watchSilence() }
    rateLimiter?.take()
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

  /// True if the caller or a push to send again waits for room.
  var isWaitingForRoom: Bool { isStarved || !resends.isEmpty }

  func giveBack(_ slot: Int, _ why: NotSentReason) {
    endTrial(of: slot)
    provider.forget(slot)
    handler?.notSent(tag: slots.release(slot), why: why, from: self)
  }

  func giveBackResends(_ why: NotSentReason) {
    while let slot = resends.popFirst() ?? unauthorised.popFirst() { giveBack(slot, why) }
  }

  /// Call before `slot` leaves its stream.
  func endTrial(of slot: Int) {
    guard slot == trust.trialSlot else { return }
    trust.trialSlot = -1
    provider.trialEnded()
  }

  /// Expects no more answers to pushes on streams.
  func overlookStreams() {
    slots.overlookAll()
    for slot in resends { slots.expect(slot) }
    for slot in unauthorised { slots.expect(slot) }
  }

  func resendUnauthorised() {
    for _ in 0..<unauthorised.count { if let slot = unauthorised.popFirst() { sendAgain(slot) } }
  }

  /// The fetch of an authorisation has ended, and there is one to use.
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

  /// Uses free room: first for pushes to send again, then for the caller.
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

  /// True if the provider refuses pushes with the current credential, or the token endpoint gives no token.
  public var isCredentialRefused: Bool { health.stop != nil || provider.source?.isRefused == true }

  /// The error code for a push that can't wait for the pool.
  public var refusalCode: PushError { health.stop?.code ?? .unavailable }

  func paused(_ pause: PoolHealth.Pause?) {
    guard let pause else { return }
    if case .begun(let seconds, let reason) = pause {
      observed(.paused(seconds: seconds, reason: reason))
      giveBackResends(.unreachable)
    }
    rearm()
  }

  /// Uses a new credential. Pushes in flight finish with the old one.
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

  public var isPaced: Bool { rateLimiter != nil }

  public func changePace(messagesPerMinute: Int) {
    rateLimiter?.change(perMinute: messagesPerMinute, at: time.now)
    rearm()
  }

  /// Sending is possible again after an outage. The rate ramps up.
  func outageEnded() {
    if health.isShortOfQuota { rateLimiter?.lower(at: time.now) }
    health.isShortOfQuota = false
    rateLimiter?.ramp(from: time.now)
  }

  /// When the rate allows a waiting push; `distantFuture` if something else holds it back.
  private var paceDeadline: MonotonicTime {
    guard rateLimiter != nil, isWaitingForRoom, connections.sendableStreams > 0 else { return .distantFuture }
    let now = time.now
    let next = rateLimiter?.nextToken(after: now) ?? now
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
    // An earlier deadline that was added later has its own timer.
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
