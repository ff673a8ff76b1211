import HTTP2
import PushCore
import Wire

/// One credential in one shard, of all applications that have it: its connections, its authorisation, its pace. What the pools of both providers
/// have in common: slots, sending again, timers.
///
/// A pool is confined to its shard's loop. It keeps nothing waiting that it was not handed: what exceeds `capacity` stays with the caller
/// (and so in the broker). A push handed over is in exactly one place until it is reported back: on a stream, in `resends` or in `unauthorised`. The latter two
/// hold only pushes that left once and certainly were not processed: one while a connection for them exists or is being made, the other
/// while an authorisation is being fetched.
public class ProviderPool {
  public weak var handler: (any PoolHandler)?
  public weak var observer: (any PoolObserver)?
  /// How long the provider takes to answer; shared with other pools.
  public final var answerTimes: Latencies?

  /// So often connection control may turn one push away before it goes back to the caller.
  static let refusalLimit: UInt8 = 3

  /// Of an answer, by their places.
  static let keptHeaders = ["retry-after", "date"]
  static let (retryAfter, date) = (0, 1)

  let time: Turn
  let dialer: any Dialer
  let connections: ConnectionSet
  var slots = SlotTable()
  /// By their numbers; nil for those that are closed.
  final var accounts: [PoolAccount.Record?] = []
  final var closedAccounts: [Int] = []
  /// Accounts whose topic the provider refuses.
  final var refusedTopics: [Int] = []
  /// The account whose push was refused last.
  final var refusedAccount = 0
  /// For the caller: how many accounts still wait for their part of the free streams.
  public final var contenders = 0
  /// Slots waiting to be sent again, first come first served.
  private var resends = Ring<Int>()
  /// Wait for another authorisation than the one that others go out with.
  final var unauthorised = Ring<Int>()
  final var health = PoolHealth()
  final var trust = AuthorisationTrust()
  /// The slot of the push that tries an authorisation before others go out with it; negative while none does.
  final var trialSlot = -1
  /// Whether a new connection carries one request at a time until the provider has answered one.
  var probesFirst: Bool
  /// When the provider answered last, or was first waited for since.
  final var heardAt = MonotonicTime(nanoseconds: 0)
  final var silence = SilenceWatch()
  /// Asks whether a stopped credential is taken.
  final var credentialCanary: Canary?
  /// A caller found no capacity and is to be notified when there is some.
  private(set) var isStarved = false
  /// The number of the connection that the push came back by which is being reported.
  public internal(set) final var answering = 0
  /// Takes nothing more.
  private(set) var isClosing = false
  final var isClosed = false
  private var armedFor = MonotonicTime.distantFuture

  init(time: Turn, dialer: any Dialer, connections: ConnectionSet, probesFirst: Bool) {
    self.time = time
    self.dialer = dialer
    self.connections = connections
    self.probesFirst = probesFirst
    connections.pool = self
  }

  /// Closes the connections; must happen before their event loop is destroyed.
  deinit { connections.close() }

  // MARK: What a provider adds

  /// Hands the push in `slot` to the session with the current authorisation.
  func submit(_ slot: Int, to session: ClientSession) { preconditionFailure("a provider's pool submits") }
  /// Forgets the push in `slot`.
  func forget(_ slot: Int) {}
  /// What asks whether the provider answers, with the current authorisation; nil while there is none, or nothing in flight shows what to ask for.
  func canaryRequest() -> ProbeRequest? { nil }
  /// What asks whether the provider takes the credential, with the current authorisation; nil while there is none.
  func credentialRequest(of account: Int) -> ProbeRequest? { nil }
  func interpret(_ response: Response) -> ReplyMeaning { preconditionFailure("a provider's pool interprets") }
  /// What an answer means to the push in `slot` and what to do about it, for operators.
  func advice(_ meaning: ReplyMeaning, for slot: Int) -> String { "" }
  /// The topic that a refusal concerns: of the push in `slot`, or else of the account.
  func topic(for slot: Int?, of account: Int) -> String { "" }
  /// The credential, for operators: its ids, never its secrets.
  var credentialName: String { "" }
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
  /// The credential is refused to the push in `slot`, and is asked for as that push's application has it.
  func noteRefused(_ slot: Int) {}
  /// The provider's name for the message, of a delivered one.
  func messageName(in response: Response) -> [UInt8]? { nil }
  /// The generation of the authorisation that `submit` would use; nil while there is none.
  func authorise() -> Int? { 0 }
  /// The provider refused the authorisation `generation`. False when there will be no other one for it.
  /// - Parameter isTrusted: it takes others with it, who are to go on with it until there is another one.
  func renewAuthorisation(after generation: Int, isTrusted: Bool) -> Bool { false }
  /// The provider refused the credential with the authorisation `generation`, or has seen too many of them. True when there is another one.
  func replaceAuthorisation(after generation: Int, isTooMany: Bool) -> Bool { false }
  /// The provider has taken the push that tried the authorisation `generation`.
  func trialSucceeded(with generation: Int) {}
  /// The push that tried an authorisation is on no stream any more.
  func trialEnded() {}
  /// How many pushes the pace allows now.
  func paceAllowance() -> Int { .max }
  func paceTaken() {}
  /// Requests may go again after none could: the first one probes, and the rate is to rise gently.
  func outageEnded() {}
  var providerState: PoolState? { nil }
  var providerDeadline: MonotonicTime { .distantFuture }
  func providerDeadlineReached(at now: MonotonicTime) {}
  func providerClosing() {}

  // MARK: Pool

  /// Pushes handed over and not yet reported back.
  public var inFlight: Int { slots.count }

  /// Whom it sends to.
  public var server: (host: String, port: UInt16) { (connections.target.host, connections.target.port) }

  /// Connections that take pushes or finish them.
  public var openConnections: Int { connections.draining.count + connections.live.count { $0.phase == .open } }

  /// One push may go out, and when that is answered, others.
  public var takesProbe: Bool { state == .probing && room > 0 }

  /// How many pushes may be handed over right now; 0 while connecting, backing off, paused or stopped.
  public var capacity: Int {
    let room = room
    if room > 0 { return room }
    if !isStarved {
      if slots.expected == 0 { heardAt = time.now }
      isStarved = true
      rearm()
    }
    return 0
  }

  private var room: Int {
    if isClosing { return 0 }
    let room = min(connections.sendableStreams - resends.count, health.allowance - slots.expected)
    guard room > 0, authorise() != nil else { return 0 }
    return min(room, paceAllowance())
  }

  public var state: PoolState {
    if isClosed { return .closed }
    if isClosing { return .closing }
    if let stop = health.stop { return .stopped(reason: stop.reason) }
    if health.isPaused { return .paused(reason: health.pauseReason) }
    if let providerState { return providerState }
    if connections.isOpen {
      if health.isProbing { return .probing }
      return probesFirst && !connections.live.contains(where: { $0.hasServed }) ? .probing : .open
    }
    if connections.isConnecting { return .connecting }
    return connections.retryAt == nil ? .idle : .backingOff(reason: connections.lastFailure)
  }

  /// Seconds without an answer while one is waited for.
  static let longestSilence = 2.0

  /// The provider serves nothing: something has failed and nothing was served since, or it is silent.
  public func isInTrouble(at now: MonotonicTime) -> Bool {
    health.hasFailed || (slots.expected > 0 || isStarved) && now.seconds(since: heardAt) > Self.longestSilence
  }

  /// Something is waiting for this pool: it connects, or opens another connection. `capacityAvailable` follows when it can.
  public func wantsCapacity() {
    guard !isClosing else { return }
    if !isStarved, slots.expected == 0 { heardAt = time.now }
    isStarved = true
    if health.allowance > 0 {
      _ = authorise()
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
    providerClosing()
    connections.close()
  }

  // MARK: Sending

  /// The push is stored under `slot` by now.
  final func transmit(_ slot: Int) {
    guard let generation = authorise(), let session = connections.pick() else { return giveBack(slot, .unauthorised) }
    slots[slot].generation = generation
    slots[slot].sentAt = time.now
    slots.expect(slot)
    if slots.expected == 1 || silence.checkAt == .distantFuture { watchSilence() }
    paceTaken()
    submit(slot, to: session)
  }

  final func sendAgain(_ slot: Int) {
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
  final var isWaitingForRoom: Bool { isStarved || !resends.isEmpty }

  final func giveBack(_ slot: Int, _ why: NotSentReason) {
    endTrial(of: slot)
    forget(slot)
    handler?.notSent(tag: slots.release(slot), why: why, from: self)
  }

  final func giveBackResends(_ why: NotSentReason) {
    while let slot = resends.popFirst() ?? unauthorised.popFirst() { giveBack(slot, why) }
  }

  /// `slot` is about to leave its stream.
  final func endTrial(of slot: Int) {
    guard slot == trialSlot else { return }
    trialSlot = -1
    trialEnded()
  }

  /// What is on a stream now may never be answered.
  final func overlookStreams() {
    slots.overlookAll()
    for slot in resends { slots.expect(slot) }
    for slot in unauthorised { slots.expect(slot) }
  }

  /// What waits for another authorisation goes out with the one that there is.
  final func resendUnauthorised() {
    for _ in 0..<unauthorised.count { if let slot = unauthorised.popFirst() { sendAgain(slot) } }
  }

  /// The same, at once.
  final func authorisationSettled() {
    resendUnauthorised()
    advance()
    rearm()
  }

  /// Uses what room there is: first for what is to be sent again, then the caller hears of the rest.
  final func advance() {
    while !resends.isEmpty, connections.sendableStreams > 0,
      slots.expected - resends.count < health.allowance, authorise() != nil, paceAllowance() > 0,
      let slot = resends.popFirst()
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
  public var isCredentialRefused: Bool { health.stop != nil }

  /// What a push ends with that can't wait for the pool.
  public var refusalCode: PushError { health.stop?.code ?? .unavailable }

  final func paused(_ pause: PoolHealth.Pause?) {
    guard let pause else { return }
    if case .begun(let seconds, let reason) = pause {
      observed(.paused(seconds: seconds, reason: reason))
      giveBackResends(.unreachable)
    }
    rearm()
  }

  /// A new credential takes over: pushes in flight finish with the old one.
  final func credentialReplaced(target: DialTarget) {
    let isWanted = isStarved || refusedTopics.contains { accounts[$0]?.isStarved == true }
    forgetRefusals()
    trust = AuthorisationTrust()
    trialSlot = -1
    silence.end()
    let wasUsed = connections.isOpen || connections.isConnecting
    connections.replaceAll(target: target)
    if wasUsed || isWanted { wantsCapacity() }
    authorisationSettled()
  }

  // MARK: Time

  final func rearm() {
    let next = min(health.deadline, connections.deadline, providerDeadline, silence.checkAt, topicDeadline)
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
    providerDeadlineReached(at: now)
    checkSilence(at: now)
    askForCredential()
    askForTopics(at: now)
    if isStarved, health.allowance > 0, connections.sendableStreams == 0 { connections.want() }
    advance()
    rearm()
  }
}
